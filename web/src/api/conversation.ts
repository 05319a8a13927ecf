/**
 * The native routes around a conversation: its runs and what was thought of them, other ways to go, help with words.
 *
 * Invariant: these are routes of every hart; what one refuses is an error with the server's own words.
 */
import type { SubagentStep } from "../conversation/activity";
import type { ChatMessage } from "../conversation/message";
import { ask, json, NativeError, thread } from "./native";

export interface UploadLimits {
  max_files: number;
  max_file_size: number;
  max_total_size: number;
}

export function uploadLimits(threadId: string): Promise<UploadLimits> {
  return ask(`${thread(threadId)}/uploads/limits`);
}

export function removeUpload(threadId: string, filename: string): Promise<unknown> {
  return ask(`${thread(threadId)}/uploads/${encodeURIComponent(filename)}`, { method: "DELETE" });
}

export interface Opinion {
  rating: 1 | -1;
  comment?: string | null;
}

export interface SaidRow {
  run_id: string;
  seq: number;
  content: ChatMessage;
  /** With the last answer of a run. */
  feedback?: Opinion | null;
}

/** The newest messages with the runs they came from. */
export async function newestRows(threadId: string): Promise<SaidRow[]> {
  return (await ask<{ data: SaidRow[] }>(`${thread(threadId)}/messages/page?limit=200`)).data;
}

interface StepRow {
  seq: number;
  content: { kind?: string; text?: string; tool_calls?: { name?: string }[] };
}

const STEPS_AT_ONCE = 500;

/** What the subagent of one call said, step by step. */
export async function subagentSteps(threadId: string, runId: string, callId: string): Promise<SubagentStep[]> {
  const query = `event_types=subagent.step&task_id=${encodeURIComponent(callId)}&limit=${STEPS_AT_ONCE}`;
  const steps: SubagentStep[] = [];
  for (let after = 0; ;) {
    const path = `${thread(threadId)}/runs/${encodeURIComponent(runId)}/events?${query}&after_seq=${after}`;
    const rows = await ask<StepRow[]>(path);
    const said = rows.filter(({ content }) => content.kind !== "tool");
    steps.push(
      ...said.map(({ content }) => ({
        text: content.text ?? "",
        tools: (content.tool_calls ?? []).map((call) => call.name ?? ""),
      })),
    );
    const last = rows.at(-1);
    if (rows.length < STEPS_AT_ONCE || !last) return steps;
    after = last.seq;
  }
}

const feedback = (threadId: string, runId: string) => `${thread(threadId)}/runs/${encodeURIComponent(runId)}/feedback`;

/** `null` takes it back. */
export async function rate(threadId: string, runId: string, opinion: Opinion | null): Promise<void> {
  const init = opinion ? json("PUT", opinion) : { method: "DELETE" };
  await ask(feedback(threadId, runId), init);
}

export interface Prepared {
  input: { messages: ChatMessage[] };
  checkpoint: { checkpoint_id: string; checkpoint_ns: string } | null;
  metadata: Record<string, unknown>;
}

export function prepareAgain(threadId: string, messageId: string): Promise<Prepared> {
  return ask(`${thread(threadId)}/runs/regenerate/prepare`, json("POST", { message_id: messageId }));
}

export function prepareEdited(threadId: string, messageId: string, text: string): Promise<Prepared> {
  const body = { human_message_id: messageId, replacement_text: text };
  return ask(`${thread(threadId)}/runs/edit-regenerate/prepare`, json("POST", body));
}

export interface Fork {
  /** The first message behind it. */
  message_id: string;
  current: number;
  ways: { run_id: string; checkpoint_id: string; created_at: string }[];
}

/** Where the thread went more than one way. */
export async function listForks(threadId: string): Promise<Fork[]> {
  return (await ask<{ forks: Fork[] }>(`${thread(threadId)}/branches`)).forks;
}

/** Another thread that begins like this one, up to this message. */
export function branchThread(threadId: string, messageId: string, title: string): Promise<{ thread_id: string }> {
  return ask(`${thread(threadId)}/branches`, json("POST", { message_id: messageId, title }));
}

export interface Compaction {
  compacted: boolean;
  reason?: string | null;
  removed_message_count?: number;
}

export function compactThread(threadId: string): Promise<Compaction> {
  return ask(`${thread(threadId)}/compact`, json("POST", {}));
}

/** How many questions are suggested at most. */
export async function suggestionCount(): Promise<number> {
  const config = await ask<{ enabled: boolean; max_suggestions: number }>("/api/suggestions/config");
  return config.enabled ? config.max_suggestions : 0;
}

export async function suggestions(
  threadId: string,
  messages: { role: string; content: string }[],
  count: number,
  model: string | null,
): Promise<string[]> {
  const body = { messages, n: count, ...(model ? { model_name: model } : {}) };
  return (await ask<{ suggestions: string[] }>(`${thread(threadId)}/suggestions`, json("POST", body))).suggestions;
}

export async function polish(text: string): Promise<string> {
  return (await ask<{ rewritten_text: string }>("/api/input-polish", json("POST", { text }))).rewritten_text;
}

export interface Goal {
  objective: string;
  status?: string;
  continuation_count?: number;
  max_continuations?: number;
  last_evaluation?: { satisfied?: boolean; blocker?: string; reason?: string } | null;
}

/** `undefined`: the server has no such route. */
export async function putGoal(threadId: string, objective: string | null): Promise<Goal | null | undefined> {
  const init = objective === null ? { method: "DELETE" } : json("PUT", { objective });
  try {
    return (await ask<{ goal?: Goal | null }>(`${thread(threadId)}/goal`, init)).goal ?? null;
  } catch (error) {
    if (error instanceof NativeError && [405, 501].includes(error.status)) return undefined;
    throw error;
  }
}

export interface Features {
  /** Whether words can be polished. */
  polish: boolean;
}

export async function readFeatures(): Promise<Features> {
  const told = await ask<Record<string, { enabled?: boolean } | undefined>>("/api/features");
  return { polish: told.input_polish?.enabled === true };
}
