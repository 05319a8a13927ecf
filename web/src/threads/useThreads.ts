/**
 * The list of conversations.
 *
 * Invariant: a change shows at once and is taken back if the server refuses it.
 */
import type { Client } from "@langchain/langgraph-sdk";
import { useCallback, useEffect, useRef, useState } from "react";
import { type Failure, readFailure } from "../api/failure";
import { summaryOf, type ThreadSummary } from "./thread";

const PAGE = 60;
/** How far back a search looks, and how many may be pinned. */
const FAR = 1000;
/** Everything but the values, which hold whole conversations. */
const COLUMNS = ["thread_id", "metadata", "status", "interrupts", "created_at", "updated_at"];

export interface Threads {
  list: ThreadSummary[];
  loading: boolean;
  /** Whether the open one is listed, or was looked for in vain. */
  openKnown: boolean;
  failure: Failure | null;
  more: boolean;
  refresh(): void;
  loadMore(): void;
  /** Loads what a search may find beyond what the list shows. */
  reach(): void;
  change(id: string, change: { title?: string; pinned?: boolean; agent?: string }): Promise<void>;
  remove(id: string): Promise<void>;
}

export function useThreads(client: Client, openId: string | null): Threads {
  const [list, setList] = useState<ThreadSummary[]>([]);
  const [loading, setLoading] = useState(true);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [limit, setLimit] = useState(PAGE);
  const [more, setMore] = useState(false);
  const open = useRef(openId);
  open.current = openId;
  /** The open one that was looked for by itself, found or not. */
  const [soughtFor, setSoughtFor] = useState<string | null>(null);

  const refresh = useCallback(() => {
    const order = { sortBy: "updated_at", sortOrder: "desc", select: COLUMNS as never } as const;
    const sought = open.current;
    Promise.all([
      client.threads.search({ limit: Math.min(limit + 1, FAR), ...order }),
      // What is pinned or open is at hand however old it is.
      client.threads.search({ limit: FAR, metadata: { pinned: true }, ...order }),
      sought ? client.threads.search({ limit: 1, ids: [sought], ...order }) : [],
    ])
      .then(([found, pinned, opened]) => {
        const shown = found.slice(0, limit);
        const all = new Map([...shown, ...pinned, ...opened].map((thread) => [thread.thread_id, thread]));
        setList([...all.values()].map((thread) => summaryOf(thread as never)));
        setSoughtFor(sought);
        setMore(found.length > limit);
        setFailure(null);
      })
      .catch((error: unknown) => setFailure(readFailure(error)))
      .finally(() => setLoading(false));
  }, [client, limit]);

  useEffect(refresh, [refresh]);
  const listed = openId === null || list.some((thread) => thread.id === openId);
  const missing = !loading && !failure && !listed && soughtFor !== openId;
  useEffect(() => {
    if (missing) refresh();
  }, [missing, refresh]);

  return {
    list,
    loading,
    openKnown: listed || (!loading && !missing),
    failure,
    more,
    refresh,
    loadMore: () => setLimit(Math.min(limit + PAGE, FAR)),
    reach: () => {
      if (more) setLimit(FAR);
    },
    async change(id, change) {
      const before = list;
      setList(list.map((thread) => (thread.id === id ? { ...thread, ...change } : thread)));
      const metadata = { ...change, ...(change.title === undefined ? {} : { title_by: "user" }) };
      await client.threads.update(id, { metadata }).catch((error: unknown) => {
        setList(before);
        throw error;
      });
    },
    async remove(id) {
      const before = list;
      setList(list.filter((thread) => thread.id !== id));
      await client.threads.delete(id).catch((error: unknown) => {
        // Deleted elsewhere is deleted.
        if (readFailure(error).kind === "gone") return;
        setList(before);
        throw error;
      });
    },
  };
}
