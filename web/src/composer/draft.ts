/** Unsent text, per conversation. Invariant: gone when sent, and never on the server. */

const key = (threadId: string | null) => `hart:draft:${threadId ?? "new"}`;

export function readDraft(threadId: string | null): string {
  return sessionStorage.getItem(key(threadId)) ?? "";
}

export function writeDraft(threadId: string | null, text: string): void {
  try {
    if (text) sessionStorage.setItem(key(threadId), text);
    else sessionStorage.removeItem(key(threadId));
  } catch {
    // A very long text does not fit; it is still in the field.
  }
}

export function clearDraft(threadId: string | null): void {
  sessionStorage.removeItem(key(threadId));
}
