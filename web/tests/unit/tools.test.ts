import { expect, test } from "vitest";
import { hear, hearTask, hearUpdate, QUIET } from "../../src/conversation/activity";
import { countChanges, differenceOf, parseUnified } from "../../src/tools/difference";
import { kindOf, subjectOf } from "../../src/tools/kind";
import {
  commandResult,
  foundLines,
  hasFailed,
  looksBinary,
  searchHits,
  todosOf,
  withoutEscapes,
} from "../../src/tools/results";

test("a tool's kind and subject, also for tools and names nobody knows", () => {
  expect(subjectOf({ name: "bash", args: { command: "ls\npwd" } })).toBe("ls");
  expect(subjectOf({ name: "write_file", args: { path: "/a" } })).toBe("/a");
  expect(subjectOf({ name: "read_file", args: { path: "/mnt/user-data/outputs/a" } })).toBe("outputs/a");
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
  const said = (content: string, status?: string) => ({ type: "tool", content, ...(status ? { status } : {}) });
  expect(hasFailed("command", said("oops\nExit Code: 3"))).toBe(true);
  expect(hasFailed("read", said("a file that ends in\nExit Code: 3"))).toBe(false);
  expect(hasFailed("read", said("no", "error"))).toBe(true);
  expect(hasFailed("command", undefined)).toBe(false);
});

test("what was found among files, a line each; what is no such line is text", () => {
  expect(foundLines("Found 2 matches under /a\n/a/b.py:3: rows = 4\n/a/c.py:12: x: y")).toEqual({
    about: "Found 2 matches under /a",
    lines: [
      { path: "/a/b.py", number: 3, text: "rows = 4" },
      { path: "/a/c.py", number: 12, text: "x: y" },
    ],
  });
  expect(foundLines("Found 1 paths under /a\n1. /a/b c.py")?.lines).toEqual([
    { path: "/a/b c.py", number: null, text: "" },
  ]);
  expect(foundLines("No matches found under /a")).toEqual({ about: "No matches found under /a", lines: [] });
  expect(foundLines("/a/b.py-2- context\nNot searched: 2 files")).toBeNull();
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
  // Its time is the server's, whenever the page hears of it.
  const started_at = "2026-01-01T00:00:00Z";
  activity = hear(activity, { type: "task_started", task_id: "u", description: "d", started_at }, 9e12);
  activity = hear(activity, { type: "task_failed", task_id: "u", error: "e", duration_ms: 1500 }, 9e12);
  const began = Date.parse(started_at);
  expect(activity.subagents.u).toMatchObject({ startedAt: began, endedAt: began + 1500 });
  expect(hear(activity, { type: "unheard" }, 6)).toBe(activity);
  expect(hear(activity, null, 6)).toBe(activity);
});

test("what a subagent says in its own namespace goes to the card of its call", () => {
  const said = { model: { messages: [{ type: "ai", content: "inside" }] } };
  let activity = hearTask(QUIET, { id: "task-1", name: "tools", input: [{ id: "call-1", name: "task" }] });
  activity = hearUpdate(activity, said, ["tools:task-1"]);
  expect(activity.inner["call-1"]).toEqual([{ text: "inside", tools: [] }]);
  expect(hearUpdate(activity, said, undefined)).toBe(activity);
  expect(hearUpdate(activity, said, ["tools:other"])).toBe(activity);
  expect(hearTask(activity, { id: "x", result: null })).toBe(activity);
});
