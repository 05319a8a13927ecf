/**
 * Uploads with progress.
 *
 * Invariant: what is not finished can be cancelled, and leaves nothing behind on this side.
 */
import { authorization } from "./connection";
import { NativeError, type UploadedFile } from "./native";

export interface Upload {
  done: Promise<UploadedFile>;
  cancel(): void;
}

/** `fetch` does not tell how far it is; `XMLHttpRequest` does. */
export function startUpload(threadId: string, file: File, onProgress: (share: number) => void): Upload {
  const xhr = new XMLHttpRequest();
  const done = new Promise<UploadedFile>((resolve, reject) => {
    xhr.open("POST", `/api/threads/${encodeURIComponent(threadId)}/uploads`);
    for (const [name, value] of Object.entries(authorization())) xhr.setRequestHeader(name, value);
    xhr.upload.onprogress = (event) => {
      if (event.lengthComputable) onProgress(event.loaded / event.total);
    };
    xhr.onerror = () => reject(new TypeError("network: the upload was cut off"));
    xhr.onabort = () => reject(new DOMException("cancelled", "AbortError"));
    xhr.onload = () => {
      if (xhr.status < 200 || xhr.status >= 300) return reject(new NativeError(xhr.status, xhr.responseText));
      const file = fileOf(xhr.responseText);
      if (file) resolve(file);
      else reject(new NativeError(422, "the server took no file of that name; rename it"));
    };
    const body = new FormData();
    body.append("files", file, file.name);
    xhr.send(body);
  });
  return { done, cancel: () => xhr.abort() };
}

function fileOf(answer: string): UploadedFile | undefined {
  try {
    return (JSON.parse(answer) as { files?: UploadedFile[] }).files?.[0];
  } catch {
    return undefined;
  }
}
