/**
 * Files on their way to the thread.
 *
 * Invariant: a message is sent only when every file it names has arrived; what is taken off the message does not stay on
 * the server; what went with a message that was not taken is back on the next one.
 */
import { useEffect, useRef, useState } from "react";
import { removeUpload, uploadLimits } from "../api/conversation";
import { type Failure, readFailure } from "../api/failure";
import { startUpload } from "../api/upload";
import type { AttachedFile } from "../conversation/message";
import { useText } from "../text/language";
import type { Text } from "../text/en";
import { movedFiles, readDraftFiles, writeDraftFiles } from "./draft";
import { refusalOf } from "./limits";

export interface Attachment {
  id: number;
  name: string;
  size: number;
  /** Between 0 and 1. */
  progress: number;
  error: string | null;
  /** Trying once more may help. */
  again: boolean;
  done: AttachedFile | null;
}

export function useAttachments(threadId: string | null, ensureThread: () => Promise<string>) {
  const t = useText();
  const nextId = useRef(1);
  const arrived = (done: AttachedFile): Attachment => {
    const { filename: name, size = 0 } = done;
    return { id: nextId.current++, name, size, progress: 1, error: null, again: false, done };
  };
  const [list, setList] = useState<Attachment[]>(() => readDraftFiles(threadId).map(arrived));
  const cancels = useRef(new Map<number, () => void>());
  const files = useRef(new Map<number, File>());
  /** What the last message took along. */
  const sent = useRef<{ list: Attachment[]; files: Map<number, File> }>({ list: [], files: new Map() });

  useEffect(() => {
    writeDraftFiles(
      threadId,
      list.flatMap((one) => (one.done ? [one.done] : [])),
    );
  }, [threadId, list]);

  const update = (id: number, change: Partial<Attachment>) =>
    setList((now) => now.map((one) => (one.id === id ? { ...one, ...change } : one)));

  const upload = async (id: number, file: File, others: File[]) => {
    try {
      const threadId = await ensureThread();
      // Taken back meanwhile.
      if (!files.current.has(id)) return;
      // The server has the last word; where it does not tell its limits, it refuses by itself.
      const limits = await uploadLimits(threadId).catch(() => null);
      const refused = limits && refusalOf(file, others, limits, t);
      if (refused) return update(id, { error: refused, again: false });
      const running = startUpload(threadId, file, (progress) => update(id, { progress }));
      cancels.current.set(id, running.cancel);
      const answer = await running.done;
      const path = answer.virtual_path ?? answer.path;
      update(id, { progress: 1, done: { filename: answer.filename, size: answer.size, path } });
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") return;
      const failure = readFailure(error);
      update(id, { error: reasonOf(failure, t), again: failure.kind === "offline" || failure.kind === "server" });
    } finally {
      cancels.current.delete(id);
    }
  };

  const forget = (id: number) => {
    cancels.current.get(id)?.();
    files.current.delete(id);
    setList((now) => now.filter((one) => one.id !== id));
  };

  const add = (added: File[]) => {
    for (const file of added) {
      const id = nextId.current++;
      const others = [...files.current.values()];
      files.current.set(id, file);
      const { name, size } = file;
      setList((now) => [...now, { id, name, size, progress: 0, error: null, again: false, done: null }]);
      void upload(id, file, others);
    }
  };
  useEffect(() => {
    const moved = movedFiles();
    if (threadId === null && moved.length > 0) add(moved);
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, []);

  return {
    list,
    /** Those that are still on this side. */
    local: () => [...files.current.values()],
    pending: list.some((one) => one.done === null && one.error === null),
    finished: list.flatMap((one) => (one.done ? [one.done] : [])),
    add,
    retry(id: number) {
      const file = files.current.get(id);
      if (!file) return;
      update(id, { error: null, progress: 0 });
      const others = [...files.current].flatMap(([other, one]) => (other === id ? [] : [one]));
      void upload(id, file, others);
    },
    remove(id: number) {
      const done = list.find((one) => one.id === id)?.done;
      forget(id);
      if (done) {
        // Should it fail, the file stays in the thread, where the agent may see it but nobody is told of it.
        void ensureThread()
          .then((threadId) => removeUpload(threadId, done.filename))
          .catch(() => undefined);
      }
    },
    /** They go with a message. */
    send() {
      sent.current = { list, files: files.current };
      files.current = new Map();
      setList([]);
    },
    /** The message they went with was not taken. */
    putBack(unsent: AttachedFile[]) {
      const { list: old, files: local } = sent.current;
      const back = unsent.map((file) => old.find((one) => one.done?.path === file.path) ?? arrived(file));
      for (const { id } of back) {
        const file = local.get(id);
        if (file) files.current.set(id, file);
      }
      setList((now) => [...back, ...now.filter((one) => !unsent.some((file) => file.path === one.done?.path))]);
    },
  };
}

function reasonOf(failure: Failure, t: Text): string {
  if (failure.kind === "offline") return t.attach.cutOff;
  return failure.detail || t.composer.uploadFailed;
}
