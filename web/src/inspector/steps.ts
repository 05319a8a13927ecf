/**
 * The history of a thread as a timeline.
 *
 * Invariant: a step shows what it added to the conversation, how long it took, and which tokens it used.
 */
import { type ChatMessage, isHidden, textOf, toolCallsOf } from "../conversation/message";

export interface RawState {
  values?: { messages?: ChatMessage[] } & Record<string, unknown>;
  next?: string[];
  metadata?: Record<string, unknown> | null;
  created_at?: string | null;
  checkpoint?: { checkpoint_id?: string | null } | null;
  parent_checkpoint?: { checkpoint_id?: string | null } | null;
}

export interface Step {
  checkpointId: string;
  parentId: string | null;
  number: number;
  source: string;
  runId: string | null;
  at: number;
  /** Since the step before, in milliseconds. */
  took: number | null;
  tokens: number;
  /** Where the model has a price. */
  cost: number | null;
  added: string[];
  /** The messages themselves. */
  messages: ChatMessage[];
  next: string[];
}

/** `states` come newest first, as the server sends them; so do the steps. */
export function stepsOf(states: readonly RawState[]): Step[] {
  const byId = new Map(states.map((state) => [state.checkpoint?.checkpoint_id ?? "", state]));
  return states.flatMap((state): Step[] => {
    const id = state.checkpoint?.checkpoint_id;
    if (!id) return [];
    const parentId = state.parent_checkpoint?.checkpoint_id ?? null;
    const parent = parentId ? byId.get(parentId) : undefined;
    const known = new Set((parent?.values?.messages ?? []).map((message) => message.id));
    const added = (state.values?.messages ?? []).filter((message) => parent && !known.has(message.id));
    const at = Date.parse(state.created_at ?? "") || 0;
    const before = Date.parse(parent?.created_at ?? "") || 0;
    return [
      {
        checkpointId: id,
        parentId,
        number: Number(state.metadata?.step ?? 0),
        source: String(state.metadata?.source ?? "loop"),
        runId: typeof state.metadata?.run_id === "string" ? state.metadata.run_id : null,
        at,
        took: before && at ? at - before : null,
        tokens: added.reduce((sum, message) => sum + (message.usage_metadata?.total_tokens ?? 0), 0),
        cost: costOf(state, parent),
        added: added
          .filter((message) => !isHidden(message))
          .map(describe)
          .filter((line) => line !== ""),
        messages: added.filter((message) => !isHidden(message)),
        next: state.next ?? [],
      },
    ];
  });
}

interface Counted {
  run_id?: string | null;
  cost?: number | null;
}

/** The agent adds up what its run cost; the step's share is what came to it. */
function costOf(state: RawState, parent: RawState | undefined): number | null {
  const counted = state.values?.token_usage as Counted | null | undefined;
  if (typeof counted?.cost !== "number") return null;
  const before = parent?.values?.token_usage as Counted | null | undefined;
  const earlier = before?.run_id === counted.run_id ? (before?.cost ?? 0) : 0;
  const cost = counted.cost - earlier;
  return cost > 0 ? cost : null;
}

/** Steps of one run after the other, newest run first. */
export interface RunSteps {
  runId: string | null;
  steps: Step[];
  tokens: number;
  cost: number | null;
  /** From its first step to its last, in milliseconds. */
  took: number;
}

export function runsOf(steps: readonly Step[]): RunSteps[] {
  const runs: RunSteps[] = [];
  for (const step of steps) {
    const last = runs.at(-1);
    const run =
      last && last.runId === step.runId
        ? last
        : { runId: step.runId, steps: [], tokens: 0, cost: null as number | null, took: 0 };
    if (run !== last) runs.push(run);
    run.steps.push(step);
    run.tokens += step.tokens;
    if (step.cost !== null) run.cost = (run.cost ?? 0) + step.cost;
    run.took = (run.steps[0]?.at ?? 0) - step.at;
  }
  return runs;
}

function describe(message: ChatMessage): string {
  const calls = toolCallsOf(message).map((call) => call.name);
  const text = textOf(message).trim().replace(/\s+/g, " ").slice(0, 120);
  const words = [
    message.type === "tool" ? (message.name ?? "tool") : "",
    text,
    calls.length ? `→ ${calls.join(", ")}` : "",
  ];
  return words.filter(Boolean).join(" ");
}

export interface Totals {
  input: number;
  output: number;
  total: number;
  byModel: [string, number][];
}

/** What the messages say they cost. */
export function totalsOf(messages: readonly ChatMessage[]): Totals {
  const totals = { input: 0, output: 0, total: 0 };
  const byModel = new Map<string, number>();
  for (const message of messages) {
    const usage = message.usage_metadata;
    if (!usage) continue;
    totals.input += usage.input_tokens ?? 0;
    totals.output += usage.output_tokens ?? 0;
    totals.total += usage.total_tokens ?? 0;
    const model = message.response_metadata?.model_name;
    const name = typeof model === "string" ? model : "?";
    byModel.set(name, (byModel.get(name) ?? 0) + (usage.total_tokens ?? 0));
  }
  return { ...totals, byModel: [...byModel].sort((a, b) => b[1] - a[1]) };
}

export function readableDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  return `${minutes} min ${Math.round((ms % 60_000) / 1000)} s`;
}
