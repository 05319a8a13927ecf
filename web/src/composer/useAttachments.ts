/**
 * Files on their way to the thread.
 *
 * Invariant: a message is sent only when every file it names has arrived.
 */
import { useRef, useState } from "react";
import { readFailure } from "../api/failure";
import { startUpload } from "../api/upload";
import { uploadLimits } from "../api/native";
import type { AttachedFile } from "../conversation/message";
import { readableSize } from "../files/fileKind";
import { useText } from "../text/language";

export interface Attachment {
  id: number;
  name: string;
  size: number;
  /** Between 0 and 1. */
  progress: number;
  error: string | null;
  done: AttachedFile | null;
}

export function useAttachments(ensureThread: () => Promise<string>) {
  const t = useText();
  const [list, setList] = useState<Attachment[]>([]);
  const cancels = useRef(new Map<number, () => void>());
  const nextId = useRef(1);

  const update = (id: number, change: Partial<Attachment>) =>
    setList((now) => now.map((one) => (one.id === id ? { ...one, ...change } : one)));

  const upload = async (id: number, file: File) => {
    try {
      const threadId = await ensureThread();
      const limits = await uploadLimits(threadId);
      if (limits && file.size > limits.max_file_size) {
        return update(id, { error: t.composer.uploadTooLarge(readableSize(limits.max_file_size)) });
      }
      const running = startUpload(threadId, file, (progress) => update(id, { progress }));
      cancels.current.set(id, running.cancel);
      const answer = await running.done;
      if (!answer) return update(id, { error: t.composer.uploadUnavailable });
      const path = answer.virtual_path ?? answer.path;
      update(id, { progress: 1, done: { filename: answer.filename, size: answer.size, path } });
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") return;
      update(id, { error: readFailure(error).detail || t.composer.uploadFailed });
    } finally {
      cancels.current.delete(id);
    }
  };

  return {
    list,
    pending: list.some((one) => one.done === null && one.error === null),
    finished: list.flatMap((one) => (one.done ? [one.done] : [])),
    add(files: File[]) {
      for (const file of files) {
        const id = nextId.current++;
        setList((now) => [...now, { id, name: file.name, size: file.size, progress: 0, error: null, done: null }]);
        void upload(id, file);
      }
    },
    remove(id: number) {
      cancels.current.get(id)?.();
      setList((now) => now.filter((one) => one.id !== id));
    },
    clear: () => setList([]),
  };
}
