// Shows openapi.json, and sends what is filled in. Loads nothing else.
"use strict";

const at = (id) => document.getElementById(id);

function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function resolved(schema, all, depth = 0) {
  if (schema && schema.$ref && depth < 4) return resolved(all[schema.$ref.split("/").pop()], all, depth + 1);
  return schema;
}

// An empty value of each field that must be there.
function example(schema, all) {
  const known = resolved(schema, all) || {};
  if (known.type === "array") return [example(known.items, all)];
  const body = {};
  for (const name of known.required || []) {
    const type = (resolved(known.properties[name], all) || {}).type;
    body[name] = { string: "", integer: 1, number: 1, boolean: false, array: [], object: {} }[type] ?? null;
  }
  return body;
}

function operation(path, method, about, all) {
  const fields = {};
  const inputs = make("fieldset", {});
  for (const parameter of about.parameters) {
    fields[parameter.name] = make("input", { placeholder: parameter.schema.format || parameter.schema.type });
    inputs.append(make("label", {}, `${parameter.name} `, fields[parameter.name]));
  }
  const form = make("form", {}, inputs);
  const schema = about.requestBody && about.requestBody.content["application/json"].schema;
  const body = make("textarea", { "aria-label": "body" });
  if (schema) {
    body.value = JSON.stringify(example(schema, all), null, 2);
    form.append(body, make("details", {}, make("summary", {}, "Fields of the body"),
      make("pre", {}, JSON.stringify(resolved(schema, all), null, 2))));
  }
  const answer = make("pre", { hidden: "" });
  form.append(make("button", {}, "Send"), answer);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    let url = path.slice(1);
    const query = new URLSearchParams();
    for (const parameter of about.parameters) {
      const value = fields[parameter.name].value;
      if (parameter.in === "path") url = url.replace(`{${parameter.name}}`, encodeURIComponent(value));
      else if (value) query.set(parameter.name, value);
    }
    const headers = { "content-type": "application/json" };
    if (at("token").value) headers.authorization = `Bearer ${at("token").value}`;
    answer.hidden = false;
    answer.textContent = "…";
    try {
      const response = await fetch(`${url}${query.size ? `?${query}` : ""}`,
        { method: method.toUpperCase(), headers, body: schema ? body.value : undefined });
      const decoder = new TextDecoder();
      answer.textContent = `${response.status}\n`;
      if (response.body) for await (const part of response.body) answer.textContent += decoder.decode(part, { stream: true });
    } catch (error) {
      answer.textContent = String(error);
    }
  });
  const head = make("summary", {}, make("code", { class: `method ${method}` }, method), make("code", {}, path), about.summary);
  return make("details", { "data-words": `${method} ${path} ${about.summary}`.toLowerCase() }, head, form);
}

async function show() {
  const response = await fetch("openapi.json");
  const api = await response.json();
  at("about").textContent = `${api.info.description} Version ${api.info.version}.`;
  const groups = {};
  for (const [path, methods] of Object.entries(api.paths))
    for (const [method, about] of Object.entries(methods))
      (groups[about.tags[0]] ||= []).push(operation(path, method, about, api.components.schemas));
  for (const [name, all] of Object.entries(groups)) at("operations").append(make("section", {}, make("h2", {}, name), ...all));
  at("find").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase();
    for (const one of document.querySelectorAll("details[data-words]")) one.hidden = !one.dataset.words.includes(words);
  });
}

show().catch((error) => { at("about").textContent = `The description cannot be read: ${error}`; });
