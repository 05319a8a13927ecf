/**
 * Threads as the list shows them.
 *
 * Invariant: a title a person gave is never replaced by one that was made up.
 */

export interface ThreadSummary {
  id: string;
  title: string | null;
  pinned: boolean;
  /** Which agent answers here, where somebody chose one. */
  agent: string | null;
  status: string;
  /** Whether it waits for an answer; one that was stopped is interrupted, too, and asks nothing. */
  asks: boolean;
  updatedAt: number;
}

interface RawThread {
  thread_id: string;
  metadata?: Record<string, unknown> | null;
  values?: unknown;
  status?: string;
  interrupts?: Record<string, unknown> | null;
  updated_at?: string;
  created_at?: string;
}

export function summaryOf(thread: RawThread): ThreadSummary {
  const metadata = thread.metadata ?? {};
  const values = (thread.values ?? {}) as Record<string, unknown>;
  const title = [metadata.title, values.title].find((one) => typeof one === "string" && one.trim() !== "");
  return {
    id: thread.thread_id,
    title: typeof title === "string" ? title : null,
    pinned: metadata.pinned === true,
    agent: typeof metadata.agent === "string" ? metadata.agent : null,
    status: thread.status ?? "idle",
    asks: thread.status === "interrupted" && Object.keys(thread.interrupts ?? {}).length > 0,
    updatedAt: Date.parse(thread.updated_at ?? thread.created_at ?? "") || 0,
  };
}

/** A title until there is a better one: the first line of the first message. */
export function provisionalTitle(text: string): string {
  const line = text.trim().split("\n", 1)[0] ?? "";
  const chars = Array.from(line.replace(/\s+/g, " "));
  return chars.length > 60 ? `${chars.slice(0, 59).join("")}…` : chars.join("");
}

export type Age = "pinned" | "today" | "yesterday" | "week" | "older";

export function groupByAge(threads: readonly ThreadSummary[], now: number): [Age, ThreadSummary[]][] {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  const day = 86_400_000;
  const ageOf = (thread: ThreadSummary): Age => {
    if (thread.pinned) return "pinned";
    if (thread.updatedAt >= midnight) return "today";
    if (thread.updatedAt >= midnight - day) return "yesterday";
    return thread.updatedAt >= midnight - 7 * day ? "week" : "older";
  };
  const groups: [Age, ThreadSummary[]][] = [];
  for (const age of ["pinned", "today", "yesterday", "week", "older"] as const) {
    const members = threads.filter((thread) => ageOf(thread) === age);
    if (members.length > 0) groups.push([age, members]);
  }
  return groups;
}

export function matchesSearch(thread: ThreadSummary, query: string): boolean {
  const words = query.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  const title = (thread.title ?? thread.id).toLocaleLowerCase();
  return words.every((word) => title.includes(word));
}
