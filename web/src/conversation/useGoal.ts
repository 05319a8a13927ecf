/**
 * What the thread is to reach, and changing it.
 *
 * Invariant: shown as the server holds it; what a person just changed shows until the server says otherwise.
 */
import type { Client } from "@langchain/langgraph-sdk";
import { useState } from "react";
import { type Goal, putGoal } from "../api/conversation";
import { goalOf } from "./goal";

export function useGoal(client: Client, told: unknown, ensureThread: () => Promise<string>) {
  const [own, setOwn] = useState<{ goal: Goal | null; over: unknown } | null>(null);
  const goal = own && own.over === told ? own.goal : goalOf(told);
  const change = async (objective: string | null): Promise<void> => {
    const threadId = await ensureThread();
    let kept = await putGoal(threadId, objective);
    if (kept === undefined) {
      // A server without the route keeps it in the thread's state all the same.
      await client.threads.updateState(threadId, { values: { goal: objective } });
      kept = objective === null ? null : { objective, status: "active" };
    }
    setOwn({ goal: kept, over: told });
  };
  return { goal, change };
}
