/**
 * Uploads with progress.
 *
 * Invariant: what is not finished can be cancelled, and leaves nothing behind on this side.
 */
import { authorization } from "./connection";
import { NativeError, type UploadedFile } from "./native";

export interface Upload {
  /** `null`: the server takes no uploads. */
  done: Promise<UploadedFile | null>;
  cancel(): void;
}

/** `fetch` does not tell how far it is; `XMLHttpRequest` does. */
export function startUpload(threadId: string, file: File, onProgress: (share: number) => void): Upload {
  const xhr = new XMLHttpRequest();
  const done = new Promise<UploadedFile | null>((resolve, reject) => {
    xhr.open("POST", `/api/threads/${encodeURIComponent(threadId)}/uploads`);
    for (const [name, value] of Object.entries(authorization())) xhr.setRequestHeader(name, value);
    xhr.upload.onprogress = (event) => {
      if (event.lengthComputable) onProgress(event.loaded / event.total);
    };
    xhr.onerror = () => reject(new TypeError("network: the upload was cut off"));
    xhr.onabort = () => reject(new DOMException("cancelled", "AbortError"));
    xhr.onload = () => {
      if ([404, 405, 501].includes(xhr.status)) return resolve(null);
      if (xhr.status < 200 || xhr.status >= 300) return reject(new NativeError(xhr.status, xhr.responseText));
      try {
        const answer = JSON.parse(xhr.responseText) as { files?: UploadedFile[] };
        resolve(answer.files?.[0] ?? null);
      } catch {
        reject(new NativeError(xhr.status, "the answer to the upload is not JSON"));
      }
    };
    const body = new FormData();
    body.append("files", file, file.name);
    xhr.send(body);
  });
  return { done, cancel: () => xhr.abort() };
}
