import { expect, test } from "vitest";
import { readFailure } from "../../src/api/failure";
import { parseRoute, pathOf } from "../../src/app/route";
import { slashQuery } from "../../src/composer/slash";
import { runContext } from "../../src/conversation/runContext";
import { filesOfConversation } from "../../src/files/artifacts";
import { fileKindOf, mediaTypeOf, readableSize } from "../../src/files/fileKind";
import { parseTable } from "../../src/files/table";
import { stepsOf, totalsOf } from "../../src/inspector/steps";
import { pressed, search } from "../../src/palette/command";
import { browserLanguage } from "../../src/text/language";
import { exportMarkdown } from "../../src/threads/export";
import { groupByAge, matchesSearch, provisionalTitle, summaryOf } from "../../src/threads/thread";

test("every failure has a kind that says what to do", () => {
  const kind = (thrown: unknown) => readFailure(thrown).kind;
  expect(kind(new TypeError("Failed to fetch"))).toBe("offline");
  expect(kind(Object.assign(new Error('HTTP 409: {"detail":"busy"}'), { status: 409 }))).toBe("busy");
  expect(kind({ error: "Orphaned", message: "x" })).toBe("interrupted");
  expect(kind({ error: "GraphRecursionError", message: "x" })).toBe("limit");
  expect(kind(new Error("the model answered 500"))).toBe("model");
  expect(kind(new Error("HTTP 404: gone"))).toBe("gone");
  expect(kind("whatever")).toBe("server");
  expect(readFailure(new Error('HTTP 422: {"detail":"say more"}'))).toEqual({ kind: "refused", detail: "say more" });
});

test("addresses of the page go there and back", () => {
  expect(parseRoute(pathOf("a b"))).toEqual({ threadId: "a b" });
  expect(parseRoute("/")).toEqual({ threadId: null });
  expect(parseRoute("/chat/%E0%A4%A")).toEqual({ threadId: null });
  expect(parseRoute("/api/threads/x")).toEqual({ threadId: null });
});

test("threads are titled, sorted by age and found", () => {
  const now = new Date(2026, 5, 15, 12).getTime();
  const thread = (id: string, hours: number, pinned = false) => ({
    id,
    title: id,
    pinned,
    agent: null,
    status: "idle",
    asks: false,
    updatedAt: now - hours * 3_600_000,
  });
  const groups = groupByAge(
    [thread("a", 1), thread("b", 20), thread("c", 100), thread("d", 999), thread("e", 1, true)],
    now,
  );
  expect(groups.map(([age]) => age)).toEqual(["pinned", "today", "yesterday", "week", "older"]);
  expect(matchesSearch(thread("Big Report", 1), "rep big")).toBe(true);
  expect(provisionalTitle("  one\ntwo")).toBe("one");
  expect(Array.from(provisionalTitle("字".repeat(100)))).toHaveLength(60);
  const given = { thread_id: "t", metadata: { title: "mine" }, values: { title: "made up" } };
  expect(summaryOf(given).title).toBe("mine");
});

test("an export keeps fences whole", () => {
  const text = exportMarkdown("T", [{ type: "tool", content: "a\n```\nb" }], { you: "You" });
  expect(text).toContain("````\na\n```\nb\n````");
});

test("tables as spreadsheets write them", () => {
  const table = parseTable('a,b\r\n"x, ""y""","line\nbreak"\n\nlast,', ",");
  expect(table.header).toEqual(["a", "b"]);
  expect(table.rows).toEqual([
    ['x, "y"', "line\nbreak"],
    ["last", ""],
  ]);
  expect(parseTable("a\n1\n2\n3", ",", 2)).toMatchObject({ rows: [["1"], ["2"]], cut: true });
});

test("files are what their names say, and HTML is never a picture", () => {
  expect(fileKindOf("/x/a.HTML")).toBe("html");
  expect(fileKindOf("/x/Makefile")).toBe("code");
  expect(fileKindOf("/x/a.toString")).toBe("other");
  expect(mediaTypeOf("/x/a.html")).toBe("application/octet-stream");
  expect(readableSize(1536)).toBe("1.5 KB");
});

test("the files of a conversation, each once, newest first", () => {
  const calls = (name: string, args: Record<string, unknown>) => ({ type: "ai", tool_calls: [{ name, args }] });
  const files = filesOfConversation(
    [
      calls("write_file", { path: "/a" }),
      calls("write_file", { path: "/b" }),
      calls("present_files", { filepaths: ["/a"] }),
    ],
    undefined,
  );
  expect(files).toEqual([
    { path: "/a", origin: "presented" },
    { path: "/b", origin: "written" },
  ]);
});

test("a file that was deleted is not listed, unless it was written again or could not be deleted", () => {
  const calls = (name: string, id: string, path: string) => ({
    type: "ai",
    tool_calls: [{ name, id, args: { path } }],
  });
  const result = (id: string, status = "success") => ({ type: "tool", tool_call_id: id, status, content: "" });
  const paths = (...messages: object[]) =>
    filesOfConversation(messages as never, ["/o/a"]).map((file: { path: string }) => file.path);
  const written = [calls("write_file", "1", "/o/a"), calls("write_file", "2", "/o/b")];
  expect(paths(...written, calls("delete", "3", "/o/a"), result("3"))).toEqual(["/o/b"]);
  expect(paths(...written, calls("delete", "3", "/o"), result("3"))).toEqual([]);
  expect(paths(...written, calls("delete", "3", "/o/b"), result("3", "error"))).toEqual(["/o/a", "/o/b"]);
  expect(paths(...written, calls("delete", "3", "/o/b"))).toEqual(["/o/a", "/o/b"]);
  expect(paths(...written, calls("delete", "3", "/o/a"), result("3"), ...written)).toEqual(["/o/a", "/o/b"]);
});

test("steps say what they added and how long they took", () => {
  const human = { id: "h", type: "human", content: "hi" };
  const answer = {
    id: "a",
    type: "ai",
    content: "yo",
    usage_metadata: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
  };
  const steps = stepsOf([
    {
      values: { messages: [human, answer] },
      checkpoint: { checkpoint_id: "2" },
      parent_checkpoint: { checkpoint_id: "1" },
      created_at: "2026-01-01T00:00:02Z",
      metadata: { step: 1 },
    },
    { values: { messages: [human] }, checkpoint: { checkpoint_id: "1" }, created_at: "2026-01-01T00:00:00Z" },
  ]);
  expect(steps[0]).toMatchObject({ took: 2000, tokens: 3, added: ["yo"] });
  expect(totalsOf([human, answer])).toMatchObject({ input: 1, output: 2, total: 3, byModel: [["?", 3]] });
});

test("keys, commands and slashes", () => {
  const key = { key: "k", ctrlKey: true, metaKey: false, shiftKey: false, altKey: false };
  expect(pressed("mod+k", key, false)).toBe(true);
  expect(pressed("mod+k", key, true)).toBe(false);
  expect(pressed("mod+shift+k", key, false)).toBe(false);
  const found = search([{ title: "Open settings" }, { title: "New chat" }], "nc");
  expect(found.map((one) => one.title)).toEqual(["New chat"]);
  expect(slashQuery("/new")).toBe("new");
  expect(slashQuery("/mnt/user-data")).toBeNull();
  expect(slashQuery("1/2")).toBeNull();
});

test("a mode is a name for settings", () => {
  expect(runContext({ mode: "flash", model: null })).toEqual({
    mode: "flash",
    thinking_enabled: false,
    is_plan_mode: false,
    subagent_enabled: false,
  });
  expect(runContext({ mode: "ultra", model: "m" })).toMatchObject({
    subagent_enabled: true,
    reasoning_effort: "high",
    model_name: "m",
  });
});

test("the page speaks the first language it knows", () => {
  expect(browserLanguage(["fr", "zh-CN", "en"])).toBe("zh");
  expect(browserLanguage(["fr"])).toBe("en");
});
