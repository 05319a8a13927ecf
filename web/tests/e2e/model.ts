/**
 * A model that does as it is told: an OpenAI-compatible server whose answer is a function of the request.
 *
 * The newest user message that begins with one of these words is the script; the tool results after it say how far it is.
 *
 *   SAY text          streams the text, a word at a time
 *   SAY64 base64      the same for text that must arrive as it is
 *   SLOW n ms         streams "tick1 tick2 …", one every ms
 *   CALL tool json    calls the tool; then says "Tool said: …"
 *   STEPS json        [[tool, args], …] one call after the other; then says "All done." A third part of a step is said
 *                     before its call, and words in place of the last step are the answer.
 *   BOTH json         as STEPS, all calls at once
 *   THINK text        reasons first, then says the text
 *   FAIL status       answers with that HTTP status
 */
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

interface Message {
  role: string;
  content?: unknown;
}

type Part = { text: string } | { think: string } | { wait: number } | { call: [string, unknown] };

export interface ScriptedModel {
  url: string;
  requests: number;
  /** What plain words stand for, where a test shows them to a person. */
  meaning: Map<string, string>;
  /** What is answered to a request that holds certain words, such as those of the server's own helpers. */
  replies: { to: string; say: string }[];
  close(): Promise<void>;
}

export async function startModel(): Promise<ScriptedModel> {
  const model: ScriptedModel = {
    url: "",
    requests: 0,
    meaning: new Map(),
    replies: [],
    close: async () => undefined,
  };
  const server: Server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      if (request.method !== "POST") {
        response.setHeader("content-type", "application/json");
        return response.end(JSON.stringify({ object: "list", data: [{ id: "scripted", object: "model" }] }));
      }
      model.requests += 1;
      const asked = JSON.parse(body || "{}") as { messages?: Message[]; stream?: boolean };
      const fixed = model.replies.find((reply) => body.includes(reply.to));
      const steps = fixed ? words(fixed.say) : plan(asked.messages ?? [], model.meaning);
      void answer(steps, asked.stream === true, response, model.requests);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  model.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  model.close = () =>
    new Promise((resolve) => {
      server.closeAllConnections();
      server.close(() => resolve());
    });
  return model;
}

/** What the reviewer of skills says to all of them; for `replies`. */
export const CONTENT_REVIEWER = {
  to: "You review packages of instructions",
  say: JSON.stringify({ decision: "allow", reason: "It does what it says." }),
};

const WORDS = /^(SAY64|SAY|SLOW|CALL|STEPS|BOTH|THINK|FAIL)\b/;

/** hart marks what a user wrote, joins messages that nobody answered, and tells the model the date behind them. */
function scriptOf(message: Message, meaning: Map<string, string>): string {
  const text = textOf(message.content);
  const marked = [...text.matchAll(/--- BEGIN USER INPUT ---\n([\s\S]*?)\n--- END USER INPUT ---/g)];
  const words = (marked.at(-1)?.[1] ?? text).trim();
  return meaning.get(words) ?? words;
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((block) => String((block as { text?: string }).text ?? "")).join("");
}

function plan(messages: Message[], meaning: Map<string, string>): Part[] | number {
  const at = messages.findLastIndex((message) => message.role === "user" && WORDS.test(scriptOf(message, meaning)));
  if (at < 0) return words("echo");
  const script = scriptOf(messages[at] as Message, meaning);
  const results = messages.slice(at + 1).filter((message) => message.role === "tool");
  const word = WORDS.exec(script)?.[1];
  const rest = script.slice(word?.length ?? 0).trim();
  switch (word) {
    case "SLOW": {
      const [count, ms] = rest.split(" ").map(Number);
      return Array.from({ length: count ?? 1 }, (_, index) => [
        { wait: ms ?? 1 },
        { text: `tick${index + 1} ` },
      ]).flat();
    }
    case "CALL": {
      if (results.length > 0) return words(`Tool said: ${textOf(results.at(-1)?.content)}`);
      const space = rest.indexOf(" ");
      return [{ call: [rest.slice(0, space), JSON.parse(rest.slice(space + 1))] }];
    }
    case "STEPS": {
      const steps = JSON.parse(rest) as ([string, unknown, string?] | string)[];
      const next = steps[results.length] ?? "All done.";
      if (typeof next === "string") return words(next);
      return [{ text: next[2] ?? "One moment. " }, { call: [next[0], next[1]] }];
    }
    case "BOTH": {
      const steps = JSON.parse(rest) as [string, unknown][];
      return results.length > 0 ? words("All done.") : steps.map((call) => ({ call }));
    }
    case "THINK":
      return [{ think: "weighing " }, { think: "both sides" }, ...words(rest)];
    case "SAY64":
      return words(Buffer.from(rest, "base64").toString());
    case "FAIL":
      return Number(rest) || 500;
    default:
      return words(rest);
  }
}

function words(text: string): Part[] {
  return text.split(/(?<= )/).map((word) => ({ text: word }));
}

async function answer(parts: Part[] | number, stream: boolean, response: ServerResponse, id: number): Promise<void> {
  if (typeof parts === "number") {
    response.writeHead(parts, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: { message: "scripted failure", type: "scripted", code: "scripted" } }));
    return;
  }
  const base = { id: `chatcmpl-${id}`, created: 1, model: "scripted" };
  const calls = parts.flatMap((part) => ("call" in part ? [part.call] : []));
  const finish = calls.length > 0 ? "tool_calls" : "stop";
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  const toolCall = ([name, args]: [string, unknown], index: number) => ({
    index,
    id: `call_${id}_${index}`,
    type: "function",
    function: { name, arguments: JSON.stringify(args) },
  });
  if (!stream) {
    const content = parts.map((part) => ("text" in part ? part.text : "")).join("");
    const message = { role: "assistant", content, ...(calls.length ? { tool_calls: calls.map(toolCall) } : {}) };
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify({
        ...base,
        object: "chat.completion",
        choices: [{ index: 0, message, finish_reason: finish }],
        usage,
      }),
    );
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  const put = (delta: unknown, extra: object = {}) =>
    response.write(
      `data: ${JSON.stringify({ ...base, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: null, ...extra }] })}\n\n`,
    );
  put({ role: "assistant", content: "" });
  let index = 0;
  for (const part of parts) {
    if (response.destroyed) return;
    if ("wait" in part) await new Promise((resolve) => setTimeout(resolve, part.wait));
    else if ("text" in part) put({ content: part.text });
    else if ("think" in part) put({ reasoning_content: part.think });
    else put({ tool_calls: [toolCall(part.call, index++)] });
  }
  put({}, { finish_reason: finish });
  response.write(`data: ${JSON.stringify({ ...base, object: "chat.completion.chunk", choices: [], usage })}\n\n`);
  response.end("data: [DONE]\n\n");
}
