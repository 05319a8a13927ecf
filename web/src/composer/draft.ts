/**
 * What is written and not sent, per conversation: text, and the files that have arrived for it.
 *
 * Invariant: gone when sent, and never on the server; the files are, and belong to their conversation.
 */
import type { AttachedFile } from "../conversation/message";

const key = (threadId: string | null) => `hart:draft:${threadId ?? "new"}`;
const filesKey = (threadId: string | null) => `hart:draft-files:${threadId ?? "new"}`;

export function readDraft(threadId: string | null): string {
  return sessionStorage.getItem(key(threadId)) ?? "";
}

export function writeDraft(threadId: string | null, text: string): void {
  keep(key(threadId), text);
}

export function readDraftFiles(threadId: string | null): AttachedFile[] {
  try {
    return JSON.parse(sessionStorage.getItem(filesKey(threadId)) ?? "[]") as AttachedFile[];
  } catch {
    return [];
  }
}

export function writeDraftFiles(threadId: string | null, files: readonly AttachedFile[]): void {
  keep(filesKey(threadId), files.length > 0 ? JSON.stringify(files) : "");
}

export function clearDraft(threadId: string | null): void {
  sessionStorage.removeItem(key(threadId));
  sessionStorage.removeItem(filesKey(threadId));
}

function keep(name: string, text: string): void {
  try {
    if (text) sessionStorage.setItem(name, text);
    else sessionStorage.removeItem(name);
  } catch {
    // A very long text does not fit; it is still in the field.
  }
}

let moving: File[] = [];

/** Files of a conversation that is gone, for the new one that takes its place: they have to be sent again. */
export function moveFiles(files: File[]): void {
  moving = files;
}

export function movedFiles(): File[] {
  const files = moving;
  moving = [];
  return files;
}
