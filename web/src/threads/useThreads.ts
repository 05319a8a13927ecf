/**
 * The list of conversations.
 *
 * Invariant: a change shows at once and is taken back if the server refuses it.
 */
import type { Client } from "@langchain/langgraph-sdk";
import { useCallback, useEffect, useState } from "react";
import { type Failure, readFailure } from "../api/failure";
import { summaryOf, type ThreadSummary } from "./thread";

const PAGE = 60;
/** Everything but the values, which hold whole conversations. */
const COLUMNS = ["thread_id", "metadata", "status", "interrupts", "created_at", "updated_at"];

export interface Threads {
  list: ThreadSummary[];
  loading: boolean;
  failure: Failure | null;
  more: boolean;
  refresh(): void;
  loadMore(): void;
  change(id: string, change: { title?: string; pinned?: boolean }): Promise<void>;
  remove(id: string): Promise<void>;
}

export function useThreads(client: Client): Threads {
  const [list, setList] = useState<ThreadSummary[]>([]);
  const [loading, setLoading] = useState(true);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [limit, setLimit] = useState(PAGE);
  const [more, setMore] = useState(false);

  const refresh = useCallback(() => {
    client.threads
      .search({ limit: limit + 1, sortBy: "updated_at", sortOrder: "desc", select: COLUMNS as never })
      .then((found) => {
        setList(found.slice(0, limit).map((thread) => summaryOf(thread as never)));
        setMore(found.length > limit);
        setFailure(null);
      })
      .catch((error: unknown) => setFailure(readFailure(error)))
      .finally(() => setLoading(false));
  }, [client, limit]);

  useEffect(refresh, [refresh]);

  return {
    list,
    loading,
    failure,
    more,
    refresh,
    loadMore: () => setLimit(limit + PAGE),
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
