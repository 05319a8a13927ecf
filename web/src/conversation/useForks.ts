/**
 * The ways a conversation went, and going another one.
 *
 * Invariant: which way is shown is known to the server, so that a reload shows the same and the next message goes on there.
 */
import type { Client } from "@langchain/langgraph-sdk";
import { useEffect, useRef, useState } from "react";
import { type Fork, listForks } from "../api/conversation";

/** By the message that they begin with. */
export type Forks = ReadonlyMap<string, Fork>;
const NO_FORKS: Forks = new Map();

/** Asked for when a thread is opened, and again whenever `version` says that a new way was begun. */
export function useForks(threadId: string | null, opened: boolean, version: number, busy: boolean): Forks {
  const [forks, setForks] = useState(NO_FORKS);
  const known = useRef(opened ? -1 : 0);
  useEffect(() => {
    if (!threadId || busy || known.current === version) return;
    let alive = true;
    listForks(threadId).then(
      (list) => {
        if (!alive) return;
        known.current = version;
        setForks(new Map(list.map((fork) => [fork.message_id, fork])));
      },
      () => undefined,
    );
    return () => {
      alive = false;
    };
  }, [threadId, opened, version, busy]);
  return forks;
}

/** Makes the way that ends there the thread's own again, with what it was waiting for. */
export async function goWay(client: Client, threadId: string, checkpointId: string): Promise<void> {
  await client.threads.updateState(threadId, { values: null as never, checkpointId });
}
