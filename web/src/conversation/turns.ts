/**
 * What each turn took: the runs behind it, their tokens, cost and time, and what was thought of the answer.
 *
 * Invariant: a turn that was paused and resumed is one turn of several runs; what nobody counted is not shown.
 */
import type { Opinion } from "../api/conversation";
import type { Row } from "./rows";

export interface RunFacts {
  tokens: number;
  inputTokens: number;
  outputTokens: number;
  /** In the currency of the models' prices. */
  cost: number | null;
  /** In milliseconds. */
  took: number | null;
  /** Somebody ended it before it was done. */
  stopped: boolean;
}

export interface Turn extends RunFacts {
  /** The run that gave the answer: the one that is rated. */
  runId: string;
  opinion: Opinion | null;
}

export interface TurnSources {
  /** By the id of a message. */
  runs: ReadonlyMap<string, string>;
  /** By the id of a run. */
  facts: ReadonlyMap<string, RunFacts>;
  opinions: ReadonlyMap<string, Opinion>;
}

/** By the key of the row that ends the turn. A turn that is the same as before is the same object. */
export function turnsOf(rows: readonly Row[], sources: TurnSources, before: Turns = NO_TURNS): Turns {
  const turns = new Map<string, Turn>();
  let runs = new Set<string>();
  for (const row of rows) {
    if (row.kind === "human") {
      // A question that was answered again is said in several runs; only the answers tell which one this is.
      runs = new Set();
      continue;
    }
    const run = row.message.id ? sources.runs.get(row.message.id) : undefined;
    if (run) runs.add(run);
    if (!row.endsTurn) continue;
    const last = run ?? [...runs].at(-1);
    if (last) {
      const stopped = sources.facts.get(last)?.stopped ?? false;
      const turn = { ...sum(runs, sources.facts), stopped, runId: last, opinion: sources.opinions.get(last) ?? null };
      const old = before.get(row.key);
      turns.set(row.key, old && same(old, turn) ? old : turn);
    }
  }
  return turns;
}

export type Turns = ReadonlyMap<string, Turn>;
export const NO_TURNS: Turns = new Map();

function sum(runs: Iterable<string>, facts: ReadonlyMap<string, RunFacts>): Omit<RunFacts, "stopped"> {
  const total: Omit<RunFacts, "stopped"> = { tokens: 0, inputTokens: 0, outputTokens: 0, cost: null, took: null };
  for (const run of runs) {
    const one = facts.get(run);
    if (!one) continue;
    total.tokens += one.tokens;
    total.inputTokens += one.inputTokens;
    total.outputTokens += one.outputTokens;
    if (one.cost !== null) total.cost = (total.cost ?? 0) + one.cost;
    if (one.took !== null) total.took = (total.took ?? 0) + one.took;
  }
  return total;
}

function same(a: Turn, b: Turn): boolean {
  return (
    a.runId === b.runId &&
    a.tokens === b.tokens &&
    a.cost === b.cost &&
    a.took === b.took &&
    a.stopped === b.stopped &&
    a.opinion?.rating === b.opinion?.rating &&
    a.opinion?.comment === b.opinion?.comment
  );
}

/** A run as the server tells it. */
export interface RawRun {
  run_id: string;
  status?: string;
  created_at?: string;
  updated_at?: string;
  total_tokens?: unknown;
  total_input_tokens?: unknown;
  total_output_tokens?: unknown;
  total_cost?: unknown;
}

export function isOver(run: RawRun): boolean {
  return run.status !== "running" && run.status !== "pending";
}

export function factsOf(run: RawRun): RunFacts {
  const number = (value: unknown) => (typeof value === "number" ? value : 0);
  const took = Date.parse(run.updated_at ?? "") - Date.parse(run.created_at ?? "");
  const over = isOver(run);
  return {
    tokens: number(run.total_tokens),
    inputTokens: number(run.total_input_tokens),
    outputTokens: number(run.total_output_tokens),
    cost: typeof run.total_cost === "number" ? run.total_cost : null,
    took: over && took >= 0 ? took : null,
    // A run that paused for an answer has succeeded; only one that was cancelled says this.
    stopped: run.status === "interrupted",
  };
}
