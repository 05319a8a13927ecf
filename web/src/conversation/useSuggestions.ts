/**
 * What one might ask next.
 *
 * Invariant: asked for after an answer of this visit only, and not where the server suggests nothing: opening an old
 * conversation costs nothing, and neither does a run that was stopped or asks something itself.
 */
import { useEffect, useState } from "react";
import { suggestionCount, suggestions } from "../api/conversation";
import { settings } from "../settings/store";
import { textOf } from "./message";
import type { Conversation } from "./useConversation";

/** Asked for once per page. */
let count: Promise<number> | null = null;

export function useSuggestions({
  threadId,
  busy,
  messages,
  questions,
  failure,
  ranNow,
  stopped,
}: Conversation): string[] {
  const [found, setFound] = useState<string[]>([]);
  useEffect(() => {
    setFound([]);
    if (!threadId || busy || !ranNow || failure || stopped || questions.length > 0) return;
    const last = messages.at(-1);
    if (last?.type !== "ai" || !textOf(last)) return;
    const recent = messages
      .filter((message) => (message.type === "human" || message.type === "ai") && textOf(message))
      .slice(-4)
      .map((message) => ({ role: message.type === "human" ? "user" : "assistant", content: textOf(message) }));
    if (recent.length < 2) return;
    let alive = true;
    count ??= suggestionCount();
    count
      .then((most) => (most > 0 && alive ? suggestions(threadId, recent, most, settings().model) : []))
      .then(
        (list) => alive && setFound(list),
        () => {
          count = null;
        },
      );
    return () => {
      alive = false;
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [threadId, busy, ranNow]);
  return found;
}
