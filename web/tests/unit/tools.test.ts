import { expect, test } from "vitest";
import { hear, QUIET } from "../../src/conversation/activity";
import { countChanges, differenceOf, parseUnified } from "../../src/tools/difference";
import { kindOf, subjectOf } from "../../src/tools/kind";
import { commandResult, looksBinary, searchHits, todosOf, withoutEscapes } from "../../src/tools/results";

test("a tool's kind and subject, also for tools and names nobody knows", () => {
  expect(subjectOf({ name: "bash", args: { command: "ls\npwd" } })).toBe("ls");
  expect(subjectOf({ name: "write_file", args: { path: "/a" } })).toBe("/a");
  expect(kindOf({ name: "constructor", args: {} })).toBe("generic");
  expect(subjectOf({ name: "weather", args: { city: "Paris" } })).toBe("Paris");
  expect(subjectOf({ name: "bash", args: { command: 3 } as never })).toBe("");
});

test("what a command printed, its errors and its code", () => {
  expect(commandResult("out\nStd Error:\nbad\nExit Code: 2")).toEqual({
    output: "out",
    errorOutput: "bad",
    exitCode: 2,
  });
  expect(commandResult("just this")).toEqual({ output: "just this", errorOutput: "", exitCode: null });
});

test("search results in the shapes engines have", () => {
  const hit = { title: "T", url: "https://a.example", snippet: "s" };
  expect(searchHits({ type: "tool", content: JSON.stringify([hit]) })).toEqual([hit]);
  const other = { results: [{ title: "T", url: "https://a.example", content: "s" }] };
  expect(searchHits({ type: "tool", content: JSON.stringify(other) })).toEqual([hit]);
  expect(searchHits({ type: "tool", content: "no JSON" })).toBeNull();
});

test("differences fold what did not change", () => {
  const before = Array.from({ length: 30 }, (_, index) => `line ${index}`).join("\n");
  const lines = differenceOf(before, before.replace("line 15", "line fifteen"));
  expect(countChanges(lines)).toEqual({ added: 1, removed: 1 });
  expect(lines.filter((line) => line.kind === "gap")).toHaveLength(2);
  expect(countChanges(differenceOf("", "a\nb\n"))).toEqual({ added: 2, removed: 0 });
  expect(countChanges(parseUnified("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z"))).toEqual({ added: 1, removed: 1 });
});

test("noise is kept off the screen", () => {
  expect(looksBinary("\u0000\u0001\u0002PNG")).toBe(true);
  expect(looksBinary("plain\ttext\n")).toBe(false);
  expect(withoutEscapes("\u001b[31mred\u001b[0m \u001b]0;title\u0007x")).toBe("red x");
  expect(todosOf([{ content: "a", status: "odd" }, null, { status: "pending" }])).toEqual([
    { content: "a", status: "pending" },
  ]);
});

test("events beside the messages add up, and unknown ones change nothing", () => {
  let activity = hear(QUIET, { type: "tool_progress", tool_call_id: "c", text: "a" }, 1);
  activity = hear(activity, { type: "tool_progress", tool_call_id: "c", text: "b" }, 2);
  expect(activity.output.c).toBe("ab");
  activity = hear(activity, { type: "task_started", task_id: "t", description: "d" }, 3);
  activity = hear(activity, { type: "task_running", task_id: "t", message: { type: "ai", content: "step" } }, 4);
  activity = hear(activity, { type: "task_completed", task_id: "t", result: "r", usage: { total_tokens: 7 } }, 5);
  expect(activity.subagents.t).toMatchObject({ status: "completed", tokens: 7, startedAt: 3, endedAt: 5 });
  expect(activity.subagents.t?.steps).toEqual([{ text: "step", tools: [] }]);
  expect(hear(activity, { type: "unheard" }, 6)).toBe(activity);
  expect(hear(activity, null, 6)).toBe(activity);
});
