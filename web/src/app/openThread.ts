/**
 * Which conversation is open, and when it must be mounted anew.
 *
 * Invariant: a conversation that just got its thread stays mounted; every other change of address makes a new one.
 */
import { useCallback, useRef, useState } from "react";
import { navigate, useRoute } from "./route";

export interface OpenThread {
  key: number;
  threadId: string | null;
  /** The open conversation made this thread. */
  adopt(threadId: string): void;
  /** Forget what is on the page and load it again. */
  remount(): void;
  /** As `remount`, for a new conversation over another new one. */
  reset(): void;
}

export function useOpenThread(): OpenThread {
  const { threadId } = useRoute();
  const [view, setView] = useState({ key: 1, threadId });
  const adopted = useRef<{ key: number; threadId: string } | null>(null);
  if (view.threadId !== threadId) {
    const own = adopted.current?.key === view.key && adopted.current.threadId === threadId;
    setView({ key: own ? view.key : view.key + 1, threadId });
  }
  const remount = useCallback(() => setView((now) => ({ ...now, key: now.key + 1 })), []);
  const adopt = useCallback(
    (id: string) => {
      adopted.current = { key: view.key, threadId: id };
      navigate(id, "replace");
    },
    [view.key],
  );
  return { key: view.key, threadId, adopt, remount, reset: remount };
}
