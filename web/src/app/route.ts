/**
 * The page's own addresses: `/` is a new conversation, `/chat/{id}` one that exists.
 *
 * Invariant: none of them is an address of the API.
 */
import { useSyncExternalStore } from "react";

export interface Route {
  threadId: string | null;
}

export function parseRoute(path: string): Route {
  const match = /^\/chat\/([^/]+)\/?$/.exec(path);
  try {
    return { threadId: match?.[1] ? decodeURIComponent(match[1]) : null };
  } catch {
    return { threadId: null };
  }
}

export function pathOf(threadId: string | null): string {
  return threadId ? `/chat/${encodeURIComponent(threadId)}` : "/";
}

const listeners = new Set<() => void>();

export function navigate(threadId: string | null, how: "push" | "replace" = "push"): void {
  const path = pathOf(threadId);
  if (path !== location.pathname) {
    if (how === "push") history.pushState(null, "", path);
    else history.replaceState(null, "", path);
  }
  for (const listener of listeners) listener();
}

export function useRoute(): Route {
  const path = useSyncExternalStore(subscribe, () => location.pathname);
  return parseRoute(path);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  addEventListener("popstate", listener);
  return () => {
    listeners.delete(listener);
    removeEventListener("popstate", listener);
  };
}
