/**
 * What happens beside the messages: output of running tools, steps of subagents, waiting for a model.
 *
 * Invariant: a pure fold over `custom` events; an event of an unknown kind changes nothing.
 */
import { type ChatMessage, textOf, toolCallsOf } from "./message";

export interface SubagentActivity {
  description: string;
  model?: string | undefined;
  status: "running" | "completed" | "failed" | "cancelled" | "timed_out";
  steps: SubagentStep[];
  tokens?: number | undefined;
  result?: string | undefined;
  error?: string | undefined;
  startedAt: number;
  endedAt?: number | undefined;
}

export interface SubagentStep {
  text: string;
  tools: string[];
}

export interface Waiting {
  message: string;
  attempt?: number | undefined;
  maxAttempts?: number | undefined;
}

export interface Activity {
  /** By the id of the tool call. */
  output: Readonly<Record<string, string>>;
  subagents: Readonly<Record<string, SubagentActivity>>;
  /** Steps that came in a subagent's own namespace, by the id of the tool call. */
  inner: Readonly<Record<string, SubagentStep[]>>;
  /** Which tool call a task of the stream is. */
  owners: Readonly<Record<string, string>>;
  waiting: Waiting | null;
  /** A judge said that the thread's goal is reached. */
  goalReached: boolean;
}

export const QUIET: Activity = {
  output: {},
  subagents: {},
  inner: {},
  owners: {},
  waiting: null,
  goalReached: false,
};

/** Of the output of a command that runs, the end is what one looks at. */
const KEPT = 40_000;

export function hear(activity: Activity, event: unknown, now: number): Activity {
  if (!isObject(event)) return activity;
  const id = String(event.tool_call_id ?? event.task_id ?? "");
  switch (event.type) {
    case "tool_progress": {
      const text = ((activity.output[id] ?? "") + String(event.text ?? "")).slice(-KEPT);
      return { ...activity, output: { ...activity.output, [id]: text } };
    }
    case "task_started":
      return withSubagent(activity, id, {
        description: String(event.description ?? ""),
        model: text(event.model_name),
        status: "running",
        steps: [],
        // The server's own time: a page that is opened later tells the same.
        startedAt: timeOf(event.started_at) ?? now,
      });
    case "task_running": {
      const known = activity.subagents[id];
      if (!known) return activity;
      // What a tool answered belongs to the step that asked it.
      const answered = isObject(event.message) && event.message.type === "tool";
      return withSubagent(activity, id, {
        ...known,
        steps: answered ? known.steps : [...known.steps, stepOf(event.message)],
        tokens: tokensOf(event.usage) ?? known.tokens,
      });
    }
    case "task_completed":
    case "task_failed":
    case "task_cancelled":
    case "task_timed_out": {
      const known = activity.subagents[id];
      if (!known) return activity;
      return withSubagent(activity, id, {
        ...known,
        status: event.type.slice("task_".length) as SubagentActivity["status"],
        result: text(event.result),
        error: text(event.error),
        tokens: tokensOf(event.usage) ?? known.tokens,
        endedAt: typeof event.duration_ms === "number" ? known.startedAt + event.duration_ms : now,
      });
    }
    case "llm_retry":
    case "llm_wait":
      return {
        ...activity,
        waiting: {
          message: String(event.message ?? ""),
          attempt: number(event.attempt),
          maxAttempts: number(event.max_attempts),
        },
      };
    case "goal_evaluated":
      return isObject(event.evaluation) && event.evaluation.satisfied === true
        ? { ...activity, goalReached: true }
        : activity;
    default:
      return activity;
  }
}

/** A `tasks` event: the start of a tool's task tells whose it is. */
export function hearTask(activity: Activity, event: unknown): Activity {
  if (!isObject(event) || !Array.isArray(event.input)) return activity;
  const called: unknown = event.input[0];
  const [task, call] = [text(event.id), isObject(called) ? text(called.id) : undefined];
  if (!task || !call || activity.owners[task] === call) return activity;
  return { ...activity, owners: { ...activity.owners, [task]: call } };
}

/** An `updates` event: what a subagent said in one of its steps. */
export function hearUpdate(activity: Activity, event: unknown, namespace: readonly string[] | undefined): Activity {
  const task = namespace?.[0]?.split(":").at(-1);
  const call = task ? activity.owners[task] : undefined;
  if (!call || !isObject(event)) return activity;
  const messages = Object.values(event).flatMap((update) =>
    isObject(update) && Array.isArray(update.messages) ? (update.messages as unknown[]) : [],
  );
  const steps = messages.filter((message) => isObject(message) && message.type === "ai").map(stepOf);
  if (steps.length === 0) return activity;
  return { ...activity, inner: { ...activity.inner, [call]: [...(activity.inner[call] ?? []), ...steps] } };
}

function withSubagent(activity: Activity, id: string, subagent: SubagentActivity): Activity {
  return { ...activity, subagents: { ...activity.subagents, [id]: subagent } };
}

function stepOf(message: unknown): SubagentStep {
  if (!isObject(message)) return { text: "", tools: [] };
  const chat = message as unknown as ChatMessage;
  return { text: textOf(chat), tools: toolCallsOf(chat).map((call) => call.name) };
}

function tokensOf(usage: unknown): number | undefined {
  return isObject(usage) ? number(usage.total_tokens) : undefined;
}

function timeOf(value: unknown): number | undefined {
  return Date.parse(String(value)) || undefined;
}

const text = (value: unknown) => (typeof value === "string" ? value : undefined);
const number = (value: unknown) => (typeof value === "number" ? value : undefined);

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
