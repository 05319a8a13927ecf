import { expect, test } from "vitest";
import { approvalAnswer, questionOf, resumeValue } from "../../src/questions/approval";
import {
  answerByOption,
  answerInWords,
  clarificationOf,
  formText,
  missingFields,
} from "../../src/questions/clarification";

test("approvals are read in LangChain's batched and single shapes", () => {
  const batched = questionOf({
    id: "i1",
    value: {
      action_requests: [{ name: "bash", args: { command: "rm x" }, description: "careful" }],
      review_configs: [{ action_name: "bash", allowed_decisions: ["approve", "reject"] }],
    },
  });
  if (batched.kind !== "approval") throw new Error(batched.kind);
  expect(batched.actions[0]).toMatchObject({ name: "bash", description: "careful", allowed: ["approve", "reject"] });
  expect(approvalAnswer(batched, [{ type: "approve" }])).toEqual({ decisions: [{ type: "approve" }] });
  const single = questionOf({ id: "i2", value: { type: "tool_approval", name: "bash", args: {} } });
  if (single.kind !== "approval") throw new Error(single.kind);
  expect(approvalAnswer(single, [{ type: "reject", message: "no" }])).toEqual({ type: "reject", message: "no" });
});

test("any other question is a question in words", () => {
  expect(questionOf({ id: "a", value: { question: "Deploy?" } })).toEqual({ kind: "ask", id: "a", text: "Deploy?" });
  expect(questionOf({ id: "a", value: [1] })).toMatchObject({ kind: "ask", text: "[\n  1\n]" });
  expect(questionOf({ when: "breakpoint" }).kind).toBe("breakpoint");
});

test("one question is answered directly, several by their ids", () => {
  const one = questionOf({ id: "a", value: "x" });
  const two = questionOf({ id: "b", value: "y" });
  expect(resumeValue([one], ["yes"])).toBe("yes");
  expect(resumeValue([one, two], ["yes", "no"])).toEqual({ a: "yes", b: "no" });
});

const asked = clarificationOf({
  type: "tool",
  artifact: {
    human_input: {
      kind: "human_input_request",
      request_id: "clarification:c1",
      question: "Which?",
      fields: [
        { name: "n", label: "Name", type: "text", required: true },
        { name: "c", label: "Colours", type: "multi_select", options: [{ id: "1", label: "Red", value: "r" }] },
        { name: "ok", label: "Sure", type: "checkbox", required: true },
        { name: "odd", type: "unheard-of" },
        "broken",
      ],
      options: ["plain", { id: "o2", label: "Blue", value: "b" }],
    },
  },
});

test("a clarification is read, whatever is missing in it", () => {
  expect(asked?.fields.map((field) => field.type)).toEqual(["text", "multi_select", "checkbox", "text"]);
  expect(asked?.options).toEqual([
    { id: "option-1", label: "plain", value: "plain" },
    { id: "o2", label: "Blue", value: "b" },
  ]);
  expect(clarificationOf({ type: "tool", artifact: { human_input: { kind: "other" } } })).toBeUndefined();
  expect(clarificationOf({ type: "tool", content: "x" })).toBeUndefined();
});

test("a form is sent whole, as text with the labels a person saw", () => {
  if (!asked) throw new Error("not read");
  expect(missingFields(asked.fields, new Map())).toEqual(["n", "ok"]);
  const values = new Map<string, string | string[] | boolean>([
    ["n", "Ada"],
    ["c", ["r"]],
    ["ok", true],
  ]);
  expect(missingFields(asked.fields, values)).toEqual([]);
  expect(formText(asked.fields, values)).toBe("Name: Ada\nColours: Red\nSure: yes\nodd: -");
});

test("answers name their question, as DeerFlow's clients spell it", () => {
  if (!asked) throw new Error("not read");
  expect(answerInWords(asked, "green").additional_kwargs).toEqual({
    hide_from_ui: true,
    human_input_response: {
      version: 1,
      kind: "human_input_response",
      source: "ask_clarification",
      request_id: "clarification:c1",
      value: "green",
      response_kind: "text",
    },
  });
  expect(answerByOption(asked, { id: "o2", label: "Blue", value: "b" })).toMatchObject({
    content: "b",
    additional_kwargs: { human_input_response: { response_kind: "option", option_id: "o2" } },
  });
});
