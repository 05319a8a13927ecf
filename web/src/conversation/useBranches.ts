/**
 * The conversations that branched off from this one, and the one it branched off from.
 *
 * Invariant: asked for once per visit; a branch whose original is gone names none.
 */
import type { Client } from "@langchain/langgraph-sdk";
import { useEffect, useState } from "react";
import { summaryOf } from "../threads/thread";

export interface BranchLink {
  threadId: string;
  title: string | null;
}

export interface Branches {
  parent: BranchLink | null;
  /** By the message they begin behind. */
  children: ReadonlyMap<string, BranchLink[]>;
}

const NONE: Branches = { parent: null, children: new Map() };
const COLUMNS = ["thread_id", "metadata"];

export function useBranches(client: Client, threadId: string | null, metadata: Record<string, unknown>): Branches {
  const [branches, setBranches] = useState(NONE);
  const [openedWith] = useState(threadId);
  const parentId = [metadata.parent_thread_id, metadata.branched_from].find((id) => typeof id === "string");
  useEffect(() => {
    if (!openedWith) return;
    let alive = true;
    const search = (query: object) => client.threads.search({ limit: 100, select: COLUMNS as never, ...query });
    const children = search({ metadata: { parent_thread_id: openedWith } });
    const parent = parentId && parentId !== openedWith ? search({ ids: [parentId as string] }) : Promise.resolve([]);
    Promise.all([children, parent]).then(
      ([found, [above]]) => {
        if (!alive) return;
        const byMessage = new Map<string, BranchLink[]>();
        for (const thread of found) {
          const message = thread.metadata?.branched_from_message_id;
          if (typeof message !== "string") continue;
          byMessage.set(message, [...(byMessage.get(message) ?? []), linkTo(thread)]);
        }
        setBranches({ parent: above ? linkTo(above) : null, children: byMessage });
      },
      () => undefined,
    );
    return () => {
      alive = false;
    };
  }, [client, openedWith, parentId]);
  return branches;
}

function linkTo(thread: unknown): BranchLink {
  const { id, title } = summaryOf(thread as never);
  return { threadId: id, title };
}
