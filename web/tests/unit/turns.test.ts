import { describe, expect, it } from "vitest";
import { refusalOf } from "../../src/composer/limits";
import { takenBy } from "../../src/composer/slash";
import { hear, QUIET } from "../../src/conversation/activity";
import { goalOf, goalOrder } from "../../src/conversation/goal";
import { buildTranscript } from "../../src/conversation/rows";
import { factsOf, turnsOf } from "../../src/conversation/turns";
import { en } from "../../src/text/en";
import { delegation } from "../../src/tools/delegation";

const human = (id: string) => ({ id, type: "human", content: "q" });
const ai = (id: string) => ({ id, type: "ai", content: "a" });
const facts = (tokens: number, cost: number | null, took: number | null) => ({
  tokens,
  inputTokens: tokens,
  outputTokens: 0,
  cost,
  took,
  stopped: false,
});

describe("turns", () => {
  const { rows } = buildTranscript([human("q1"), ai("a1"), ai("a2"), human("q2"), ai("a3")]);
  const sources = {
    runs: new Map([
      ["q1", "replaced"],
      ["a1", "paused"],
      ["a2", "resumed"],
      ["a3", "next"],
    ]),
    facts: new Map([
      ["replaced", facts(100, 1, 1)],
      ["paused", facts(1, 0.5, 10)],
      ["resumed", facts(2, null, 20)],
    ]),
    opinions: new Map([["resumed", { rating: 1 as const }]]),
  };

  it("add up the runs that answered, and are rated by the last of them", () => {
    const turns = turnsOf(rows, sources);
    expect([...turns.values()]).toEqual([
      { ...facts(3, 0.5, 30), runId: "resumed", opinion: { rating: 1 } },
      { ...facts(0, null, null), runId: "next", opinion: null },
    ]);
  });

  it("are stopped where their last run was", () => {
    const stopped = { ...facts(1, null, null), stopped: true };
    const marks = (run: string) =>
      [...turnsOf(rows, { ...sources, facts: new Map([[run, stopped]]) }).values()].map((turn) => turn.stopped);
    expect(marks("resumed")).toEqual([true, false]);
    expect(marks("paused")).toEqual([false, false]);
    expect(factsOf({ run_id: "r", status: "interrupted" }).stopped).toBe(true);
    expect(factsOf({ run_id: "r", status: "success" }).stopped).toBe(false);
  });

  it("stay the same objects while nothing changes", () => {
    const before = turnsOf(rows, sources);
    const after = turnsOf(rows, { ...sources, opinions: new Map() }, before);
    const [first, second] = [...before.values()];
    expect([...after.values()][0]).not.toBe(first);
    expect([...after.values()][1]).toBe(second);
  });

  it("read what the server counted, and nothing else", () => {
    const run = {
      run_id: "r",
      status: "success",
      created_at: "2026-01-01T00:00:00Z",
      updated_at: "2026-01-01T00:00:02Z",
    };
    expect(factsOf({ ...run, total_tokens: 5, total_cost: 0.25 })).toMatchObject({ tokens: 5, cost: 0.25, took: 2000 });
    expect(factsOf({ ...run, status: "running", total_tokens: "x" })).toMatchObject({
      tokens: 0,
      cost: null,
      took: null,
    });
  });
});

describe("goals", () => {
  it("are ordered by words", () => {
    expect(goalOrder("  ")).toEqual({ kind: "show" });
    expect(goalOrder("CLEAR")).toEqual({ kind: "clear" });
    expect(goalOrder(" clear the table ")).toEqual({ kind: "set", objective: "clear the table" });
  });

  it("are taken from the state only where there is one", () => {
    for (const none of [null, undefined, "words", {}, { objective: "" }]) expect(goalOf(none)).toBeNull();
    expect(goalOf({ objective: "x" })?.objective).toBe("x");
  });

  it("are reached when a judge says so", () => {
    const judged = (satisfied: boolean) => hear(QUIET, { type: "goal_evaluated", evaluation: { satisfied } }, 0);
    expect(judged(true).goalReached).toBe(true);
    expect(judged(false)).toBe(QUIET);
  });

  it("are the only words behind a slash that the page takes", () => {
    const commands = [
      { id: "new", title: "New", slash: "new", run: () => undefined },
      { id: "goal", title: "Goal", slash: "goal", run: () => undefined, take: () => undefined },
    ];
    expect(takenBy(commands, "/goal  win\nthe race ")?.words).toBe("win\nthe race");
    expect(takenBy(commands, "/goal")?.words).toBe("");
    for (const other of ["/new thing", "/goals x", "a /goal x", "/ goal"]) expect(takenBy(commands, other)).toBeNull();
  });
});

describe("uploads", () => {
  const limits = { max_files: 2, max_file_size: 10, max_total_size: 15 };
  it("are refused by the limit they exceed", () => {
    expect(refusalOf({ size: 10 }, [], limits, en)).toBeNull();
    expect(refusalOf({ size: 11 }, [], limits, en)).toContain("10 B");
    expect(refusalOf({ size: 1 }, [{ size: 1 }, { size: 1 }], limits, en)).toContain("2 files");
    expect(refusalOf({ size: 8 }, [{ size: 8 }], limits, en)).toContain("15 B");
  });
});

describe("delegations", () => {
  const result = (content: string, additional_kwargs: Record<string, unknown>) => ({
    type: "tool",
    content,
    additional_kwargs,
  });
  it("are read from the result's own keys", () => {
    const done = result("Task Succeeded. Result: fine", {
      subagent_status: "completed",
      subagent_model_name: "m",
      subagent_token_usage: { total_tokens: 7 },
      subagent_duration_ms: 1500,
    });
    const figures = { model: "m", tokens: 7, took: 1500 };
    expect(delegation(done)).toEqual({ status: "completed", said: "fine", capped: false, ...figures });
    expect(delegation(result("Task failed. Error: e", { subagent_status: "failed", subagent_error: "e" }))).toEqual({
      status: "failed",
      error: "e",
      capped: false,
    });
  });

  it("of others are left as they are", () => {
    expect(delegation(result("Task Succeeded. Result: x", {}))).toEqual({ capped: false });
    expect(delegation(undefined)).toEqual({ capped: false });
  });
});
