/**
 * What a thread has come to when the page opens it: its values, what it waits for, and the runs still at work.
 *
 * Invariant: loaded once per visit; from then on the stream tells.
 */
import type { Client } from "@langchain/langgraph-sdk";
import { useEffect, useState } from "react";
import type { RawInterrupt } from "../questions/approval";
import { type ChatMessage, textOf } from "./message";
import type { QueuedMessage } from "./queue";

export interface ThreadValues {
  messages?: ChatMessage[];
  title?: string;
  todos?: unknown;
  artifacts?: unknown;
  [key: string]: unknown;
}

export interface LoadedThread {
  values: ThreadValues;
  /** What it waits for. Not among the values: the hook would bring it back after it was answered. */
  interrupts: RawInterrupt[];
  metadata: Record<string, unknown>;
  /** How the last run failed, if it did. */
  error: unknown;
  /** The run at work, to be joined. */
  activeRun: string | null;
  queued: QueuedMessage[];
  newestRun: string | null;
}

export type ThreadLoad =
  | { state: "none" }
  | { state: "loading" }
  | { state: "loaded"; thread: LoadedThread }
  | { state: "failed"; error: unknown };

export function useThreadLoad(client: Client, threadId: string | null): ThreadLoad & { again(): void } {
  const [tries, setTries] = useState(0);
  const [load, setLoad] = useState<ThreadLoad>({ state: threadId ? "loading" : "none" });
  // Only what the page was opened with is loaded; a thread that this page creates is already here.
  const [openedWith] = useState(threadId);
  useEffect(() => {
    if (!openedWith) return;
    let alive = true;
    loadThread(client, openedWith).then(
      (thread) => alive && setLoad({ state: "loaded", thread }),
      (error: unknown) => alive && setLoad({ state: "failed", error }),
    );
    return () => {
      alive = false;
    };
  }, [client, openedWith, tries]);
  const again = () => {
    setLoad({ state: "loading" });
    setTries(tries + 1);
  };
  return { ...load, again };
}

async function loadThread(client: Client, threadId: string): Promise<LoadedThread> {
  const [read, runs] = await Promise.all([client.threads.get(threadId), client.runs.list(threadId, { limit: 20 })]);
  const open = runs.filter((run) => run.status === "running" || run.status === "pending").reverse();
  const [active, ...waiting] = open;
  // A run that ended between the two answers: what it asked or said at the end is not in the first of them.
  const thread = read.status === "busy" && !active ? await client.threads.get(threadId) : read;
  return {
    values: (thread.values ?? {}) as ThreadValues,
    interrupts: Object.values(thread.interrupts ?? {}).flat() as RawInterrupt[],
    metadata: (thread.metadata ?? {}) as Record<string, unknown>,
    error: runs[0]?.status === "error" ? (thread as { error?: unknown }).error : undefined,
    activeRun: active?.run_id ?? null,
    newestRun: runs[0]?.run_id ?? null,
    queued: waiting.map((run) => ({ runId: run.run_id, text: queuedText(run) })),
  };
}

function queuedText(run: unknown): string {
  const input = (run as { kwargs?: { input?: { messages?: ChatMessage[] } } }).kwargs?.input;
  const last = input?.messages?.at(-1);
  return last ? textOf(last) : "";
}
