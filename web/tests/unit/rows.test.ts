import { expect, test } from "vitest";
import { keepIdentity } from "../../src/conversation/identity";
import type { ChatMessage } from "../../src/conversation/message";
import { buildTranscript } from "../../src/conversation/rows";

const human = (id: string, content: string): ChatMessage => ({ id, type: "human", content });
const ai = (id: string, content: string, calls: string[] = []): ChatMessage => ({
  id,
  type: "ai",
  content,
  tool_calls: calls.map((call) => ({ id: call, name: "bash", args: { command: "ls" } })),
});
const tool = (call: string, content: string): ChatMessage => ({
  id: `r-${call}`,
  type: "tool",
  tool_call_id: call,
  content,
});

test("results stand beside their calls, and only the last answer of a turn ends it", () => {
  const { rows } = buildTranscript([human("h", "go"), ai("a1", "", ["c1"]), tool("c1", "ok"), ai("a2", "done")]);
  expect(rows.map((row) => row.key)).toEqual(["h", "a1", "a2"]);
  expect(rows[1]).toMatchObject({ calls: [{ result: { content: "ok" } }], endsTurn: false });
  expect(rows[2]).toMatchObject({ endsTurn: true });
});

test("a growing answer leaves all other rows the same objects", () => {
  const start = [human("h", "go"), ai("a1", "", ["c1"]), tool("c1", "ok"), ai("a2", "do")];
  const before = buildTranscript(start);
  const grown = [...start.slice(0, 3), ai("a2", "done")];
  const after = buildTranscript(grown, before);
  expect(after.rows[0]).toBe(before.rows[0]);
  expect(after.rows[1]).toBe(before.rows[1]);
  expect(after.rows[2]).not.toBe(before.rows[2]);
});

test("a state that says the same again is the same, message by message", () => {
  const first = [human("h", "go"), ai("a1", "hello", ["c1"])];
  const again = JSON.parse(JSON.stringify([...first, tool("c1", "ok")])) as ChatMessage[];
  const kept = keepIdentity(first, again);
  expect(kept[0]).toBe(first[0]);
  expect(kept[2]).toBe(again[2]);
  const undefinedKeys = keepIdentity(first, [{ ...human("h", "go!") }]);
  expect(undefinedKeys[0]).not.toBe(first[0]);
});

test("what middlewares wrote is hidden; answers to forms are kept for the form", () => {
  const answer: ChatMessage = {
    id: "x",
    type: "human",
    content: "blue",
    additional_kwargs: { hide_from_ui: true, human_input_response: { request_id: "q1", value: "blue" } },
  };
  const { rows, answers } = buildTranscript([human("h", "go"), answer, { id: "s", type: "system", content: "x" }]);
  expect(rows).toHaveLength(1);
  expect(answers.get("q1")).toBe("blue");
});

test("an answer of nothing is no row", () => {
  expect(buildTranscript([ai("a", "")]).rows).toEqual([]);
});
