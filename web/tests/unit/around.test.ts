import { expect, test } from "vitest";
import type { Figures, Provider, Usage } from "../../src/api/around";
import { connectionName, connectOf, type Form, providersAt } from "../../src/connect/provider";
import { looksLikeText } from "../../src/files/fileKind";
import { pauseBefore } from "../../src/inspector/pace";
import { runsOf, stepsOf } from "../../src/inspector/steps";
import { summaryOf } from "../../src/threads/thread";
import { axisTop, dayBars, modelsByUse, readableCost } from "../../src/usage/figures";
import { currencyOf, modelName } from "../../src/usage/models";

const provider = (name: string, more: Partial<Provider> = {}): Provider => ({
  name,
  base_url: "https://x.example/v1",
  model: null,
  key: null,
  local: false,
  ...more,
});

test("providers are offered by where the model is, the well-known first", () => {
  const all = [
    provider("strange", { key: "STRANGE_KEY" }),
    provider("openai", { key: "OPENAI_API_KEY" }),
    provider("anthropic", { key: "ANTHROPIC_API_KEY" }),
    provider("ollama", { local: true }),
    provider("openai-compatible", { base_url: null }),
  ];
  const names = (place: "key" | "local" | "other") => providersAt(place, all).map((one) => one.name);
  expect(names("key")).toEqual(["anthropic", "openai", "strange"]);
  expect(names("local")).toEqual(["ollama"]);
  expect(names("other")).toEqual(["openai-compatible"]);
});

test("a connection says only what was filled in", () => {
  const form: Form = { place: "key", provider: "openai", key: " k ", address: "http://typed", model: "" };
  expect(connectOf(form, provider("openai"))).toEqual({ provider: "openai", api_key: "k" });
  const local: Form = { ...form, place: "local", key: "", address: "https://x.example/v1", model: "m" };
  expect(connectOf(local, provider("openai"))).toEqual({ provider: "openai", model: "m" });
  const moved = connectOf({ ...local, address: "http://127.0.0.1:9/v1" }, provider("openai"));
  expect(moved).toMatchObject({ base_url: "http://127.0.0.1:9/v1" });
  expect(connectionName("org/model:tag")).toBe("org/model:tag");
  expect(connectionName("模型 x")).toBe("---x");
});

const figures = (tokens: number, cost: number | null = null): Figures => ({
  llm_call_count: 1,
  total_tokens: tokens,
  input_tokens: tokens,
  output_tokens: 0,
  cost,
});

test("a day's bar is made of its models, and what nobody named is the rest", () => {
  const usage: Usage = {
    days: [
      { ...figures(30, 3), date: "2026-01-01", runs: 2, by_model: { a: figures(10, 1), b: figures(15, 2) } },
      { ...figures(0), date: "2026-01-02", runs: 0, by_model: {} },
    ],
    by_model: { a: figures(10, 1), b: figures(15, 2) },
    by_thread: [],
    total: { ...figures(30, 3), runs: 2 },
  };
  expect(modelsByUse(usage)).toEqual(["b", "a"]);
  const [first, second] = dayBars(usage, "total_tokens", "…");
  expect(first).toEqual({
    label: "2026-01-01",
    value: 30,
    parts: [
      { name: "b", value: 15 },
      { name: "a", value: 10 },
      { name: "…", value: 5 },
    ],
  });
  expect(second?.parts).toEqual([]);
  expect(dayBars(usage, "cost", "…")[0]?.parts.map((part) => part.value)).toEqual([2, 1]);
  expect(dayBars(usage, "total_tokens", "…", 1)[0]?.parts.map((part) => part.name)).toEqual(["b", "…"]);
  expect(dayBars(usage, "runs", "…").map((bar) => bar.value)).toEqual([2, 0]);
});

test("figures for people", () => {
  expect([0, 0.4, 7, 23, 999, 1000].map(axisTop)).toEqual([1, 0.5, 10, 25, 1000, 1000]);
  expect(readableCost(0.0123, "USD")).toContain("0.0123");
  expect(readableCost(12.5)).toContain("12.50");
  const amounts = [0, 0.04, 0.000123, 0.5, 12.345].map((cost) => readableCost(cost));
  expect(amounts).toEqual(["0.00", "0.04", "0.00012", "0.50", "12.35"]);
  expect(readableCost(1, "not a currency")).toContain("1.00");
});

test("models and money go by the names that people gave them", () => {
  const priced = (name: string, currency?: string) => ({ name, pricing: { ...(currency ? { currency } : {}) } });
  expect(currencyOf([priced("a", "EUR"), priced("b", "EUR"), { name: "free" }])).toBe("EUR");
  for (const mixed of [priced("b", "USD"), priced("b")]) expect(currencyOf([priced("a", "EUR"), mixed])).toBeNull();
  expect(currencyOf([])).toBeNull();
  const models = [{ name: "big", display_name: "Big One" }, { name: "small" }];
  expect(["big", "small", "gone"].map((name) => modelName(models, name))).toEqual(["Big One", "small", "gone"]);
});

test("steps have their cost and stand with their run", () => {
  const state = (id: number, run: string, cost: number | null) => ({
    values: { messages: [], ...(cost === null ? {} : { token_usage: { run_id: run, cost } }) },
    checkpoint: { checkpoint_id: String(id) },
    ...(id > 1 ? { parent_checkpoint: { checkpoint_id: String(id - 1) } } : {}),
    created_at: new Date(Date.UTC(2026, 0, 1, 0, 0, id)).toISOString(),
    metadata: { step: id, run_id: run },
  });
  // The second run counts from nothing again.
  const states = [state(4, "r2", 0.5), state(3, "r1", 0.75), state(2, "r1", 0.25), state(1, "r1", null)];
  const steps = stepsOf(states);
  expect(steps.map((step) => step.cost)).toEqual([0.5, 0.5, 0.25, null]);
  const runs = runsOf(steps);
  expect(runs.map((run) => [run.runId, run.steps.length, run.cost, run.took])).toEqual([
    ["r2", 1, 0.5, 0],
    ["r1", 3, 0.75, 2000],
  ]);
  expect(steps.map(pauseBefore)).toEqual([1000, 1000, 1000, 400]);
  expect(pauseBefore({ ...steps[0]!, took: 3_600_000 })).toBe(2500);
});

test("files without an ending are looked at", () => {
  const bytes = (text: string) => new TextEncoder().encode(text);
  expect(looksLikeText(bytes("words, 字 and more"))).toBe(true);
  expect(looksLikeText(bytes("字").slice(0, 2))).toBe(true);
  expect(looksLikeText(new Uint8Array([0x89, 0x50, 0x4e, 0x47]))).toBe(false);
  expect(looksLikeText(new Uint8Array([65, 0, 66]))).toBe(false);
});

test("a conversation keeps the agent that was chosen for it", () => {
  expect(summaryOf({ thread_id: "t", metadata: { agent: "a" } }).agent).toBe("a");
  expect(summaryOf({ thread_id: "t", metadata: { agent: 7 } }).agent).toBeNull();
});
