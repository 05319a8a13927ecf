/**
 * One file of the thread, fetched.
 *
 * Invariant: with the hash of what was read, so that a change can be refused when somebody else changed it first.
 */
import { useCallback, useEffect, useState } from "react";
import { request } from "../api/connection";
import { artifactPath } from "../api/native";
import { mediaTypeOf } from "./fileKind";

export type FileLoad =
  | { state: "loading" }
  | { state: "missing" }
  | { state: "unavailable" }
  | { state: "too-large"; size: number }
  | { state: "loaded"; blob: Blob; sha256: string };

/** More than this is downloaded, not shown. */
const LIMIT = 30 << 20;

/** `turn` is anything after which the file may be another one; what is shown stays until the new one is there. */
export function useFile(threadId: string, path: string, turn: unknown = null): { file: FileLoad; reload(): void } {
  const [file, setFile] = useState<FileLoad>({ state: "loading" });
  const [again, setAgain] = useState(0);
  useEffect(() => {
    let alive = true;
    void fetchFile(threadId, path).then((found) => alive && setFile(found));
    return () => {
      alive = false;
    };
  }, [threadId, path, turn, again]);
  const reload = useCallback(() => setAgain((now) => now + 1), []);
  return { file, reload };
}

export async function fetchFile(threadId: string, path: string): Promise<FileLoad> {
  try {
    const response = await request(artifactPath(threadId, path));
    if (response.status === 404) {
      const body = (await response.json().catch(() => ({}))) as { detail?: unknown };
      return { state: body.detail === "Not Found" ? "unavailable" : "missing" };
    }
    if (!response.ok) return { state: response.status === 501 || response.status === 405 ? "unavailable" : "missing" };
    const size = Number(response.headers.get("content-length") ?? 0);
    if (size > LIMIT) {
      void response.body?.cancel();
      return { state: "too-large", size };
    }
    const bytes = await response.arrayBuffer();
    return { state: "loaded", blob: new Blob([bytes], { type: mediaTypeOf(path) }), sha256: await hash(bytes) };
  } catch {
    return { state: "missing" };
  }
}

/** Not there on pages served insecurely; then the server cannot compare and refuses the change. */
async function hash(bytes: ArrayBuffer): Promise<string> {
  if (!globalThis.crypto?.subtle) return "";
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export async function downloadFile(threadId: string, path: string): Promise<Blob | null> {
  const response = await request(`${artifactPath(threadId, path)}?download=true`);
  return response.ok ? response.blob() : null;
}

export function useBlobText(blob: Blob): string | null {
  const [text, setText] = useState<string | null>(null);
  useEffect(() => {
    let alive = true;
    void blob.text().then((read) => alive && setText(read));
    return () => {
      alive = false;
    };
  }, [blob]);
  return text;
}
