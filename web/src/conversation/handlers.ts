/** What rows can ask for. Invariant: the same object for the life of a conversation, so that no row is redrawn for it. */
import { useMemo, useRef } from "react";
import type { ChatMessage } from "./message";

export interface RowHandlers {
  editAndAsk(messageId: string, text: string): void;
  regenerate(messageId: string): void;
  branch(messageId: string): void;
  rate(rating: 1 | -1): void;
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
      rate: (rating) => latest.current.rate(rating),
      answer: (message) => latest.current.answer(message),
    }),
    [],
  );
}
