import { expect, test } from "vitest";
import { picturesOf, reasoningOf, textOf } from "../../src/conversation/message";

test("words and reasoning are told apart, in every spelling", () => {
  const tagged = { type: "ai", content: "<think>hm</think>\nyes" };
  expect([textOf(tagged), reasoningOf(tagged)]).toEqual(["yes", "hm"]);
  const open = { type: "ai", content: "<think>still" };
  expect([textOf(open), reasoningOf(open)]).toEqual(["", "still"]);
  expect(reasoningOf({ type: "ai", content: "x", additional_kwargs: { reasoning_content: "why" } })).toBe("why");
  const blocks = {
    type: "ai",
    content: [
      { type: "thinking", thinking: "first" },
      { type: "reasoning", summary: [{ text: "second" }] },
      { type: "text", text: "out" },
    ],
  };
  expect([textOf(blocks), reasoningOf(blocks)]).toEqual(["out", "first\n\nsecond"]);
  expect(textOf({ type: "human", content: "I wrote <think> myself" })).toBe("I wrote <think> myself");
});

test("broken content is no text, not a crash", () => {
  for (const content of [null, undefined, 3, {}, [null, 3, { type: "text" }]]) {
    expect(textOf({ type: "ai", content })).toBe("");
  }
});

test("only pictures that are in the message itself are shown", () => {
  const message = {
    type: "tool",
    content: [
      { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
      { type: "image_url", image_url: { url: "https://evil.example/x.png?secret" } },
      { type: "image_url", image_url: "data:image/svg+xml;base64,AAAA" },
      { type: "image", data: "AAAA", mime_type: "image/jpeg" },
    ],
  };
  expect(picturesOf(message).map((picture) => picture.data ?? null)).toEqual([
    "data:image/png;base64,AAAA",
    null,
    null,
    "data:image/jpeg;base64,AAAA",
  ]);
});
