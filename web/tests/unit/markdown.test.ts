import { expect, test } from "vitest";
import { safeLink, threadFile } from "../../src/markdown/address";
import { splitBlocks } from "../../src/markdown/blocks";
import { sizeOf } from "../../src/markdown/Diagram";
import { sourcesOf } from "../../src/markdown/sources";

const long = "word ".repeat(100).trim();

test("the pieces joined are the text", () => {
  const text = `# A\n\n${long}\n\n- one\n\n- two\n\nAfter\n\n\`\`\`js\na\n\nb\n\`\`\`\n\nEnd`;
  const pieces = splitBlocks(text);
  expect(pieces.join("")).toBe(text);
  expect(pieces.length).toBeGreaterThan(3);
});

test("lists, fences, formulas and references are not torn apart", () => {
  const list = splitBlocks(`${long}\n\n- one\n\n  still one\n\n- two\n\nAfter`);
  expect(list.some((piece) => piece.includes("- one") && piece.includes("- two"))).toBe(true);
  const fence = splitBlocks(`${long}\n\n\`\`\`\`md\n\nText\n\n\`\`\`\n\nMore\n\`\`\`\`\n\nAfter`);
  expect(fence.some((piece) => piece.includes("Text") && piece.includes("More"))).toBe(true);
  const formula = splitBlocks(`${long}\n\n$$\na\n\nb\n$$\n\nAfter`);
  expect(formula.some((piece) => piece.includes("a\n\nb"))).toBe(true);
  expect(splitBlocks(`${long} [x][1]\n\nMore\n\n[1]: https://a.example`)).toHaveLength(1);
});

test("the start of a text is cut the same however much follows", () => {
  const text = `${long}\n\nSecond\n\nThird\n\nFourth`;
  const whole = splitBlocks(text);
  const part = splitBlocks(text.slice(0, -3));
  expect(part.slice(0, -1)).toEqual(whole.slice(0, part.length - 1));
});

test("an address leads to the web or nowhere", () => {
  expect(safeLink("https://a.example/b?c")).toBe("https://a.example/b?c");
  expect(safeLink("mailto:a@b.example")).toBe("mailto:a@b.example");
  for (const bad of [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "java\nscript:alert(1)",
    "\u0001javascript:alert(1)",
    " javascript:alert(1)",
    "java\u00adscript:alert(1)",
    "data:text/html,<script>1</script>",
    "vbscript:x",
    "blob:https://a/b",
    "file:///etc/passwd",
    "//evil.example",
    "/api/threads",
    "../x",
    "",
  ]) {
    expect(safeLink(bad), bad).toBeNull();
  }
});

test("files of the thread are known, and lead nowhere else", () => {
  expect(threadFile("/mnt/user-data/outputs/a%20b.md")).toBe("/mnt/user-data/outputs/a b.md");
  expect(threadFile("sandbox:/mnt/user-data/outputs/a.md")).toBe("/mnt/user-data/outputs/a.md");
  for (const bad of [
    "/mnt/user-data/../etc/passwd",
    "/mnt/user-data/%2e%2e/x",
    "/etc/passwd",
    "https://a/mnt/user-data/x",
  ]) {
    expect(threadFile(bad), bad).toBeNull();
  }
});

test("sources are listed once, and none that may not be followed", () => {
  const text =
    "A [citation:One](https://a.example/1), [citation: Two](https://b.example), [citation:One](https://a.example/1) " +
    "and [citation:Bad](javascript:alert(1)).";
  expect(sourcesOf(text)).toEqual([
    { title: "One", url: "https://a.example/1" },
    { title: "Two", url: "https://b.example/" },
  ]);
});

test("a diagram is as large as it was drawn", () => {
  expect(sizeOf('<svg width="100%" viewBox="-8 -8 107.5 174" role="x">')).toEqual({ width: 108, height: 174 });
  expect(sizeOf("<svg>")).toEqual({});
});
