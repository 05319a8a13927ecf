/** What rows can ask for. Invariant: the same object for the life of a conversation, so that no row is redrawn for it. */
import { useMemo, useRef } from "react";
import type { Opinion } from "../api/conversation";
import type { ChatMessage } from "./message";

export interface RowHandlers {
  editAndAsk(messageId: string, text: string): void;
  regenerate(messageId: string): void;
  branch(messageId: string): void;
  /** The open conversation gives way to another one. */
  open(threadId: string): void;
  /** Goes another way from a message. */
  go(checkpointId: string): void;
  rate(runId: string, opinion: Opinion | null): void;
  answer(message: ChatMessage): void;
}

export function useStableHandlers(handlers: RowHandlers): RowHandlers {
  const latest = useRef(handlers);
  latest.current = handlers;
  return useMemo(
    () => ({
      editAndAsk: (id, text) => latest.current.editAndAsk(id, text),
      regenerate: (id) => latest.current.regenerate(id),
      branch: (id) => latest.current.branch(id),
      open: (threadId) => latest.current.open(threadId),
      go: (checkpointId) => latest.current.go(checkpointId),
      rate: (runId, opinion) => latest.current.rate(runId, opinion),
      answer: (message) => latest.current.answer(message),
    }),
    [],
  );
}
