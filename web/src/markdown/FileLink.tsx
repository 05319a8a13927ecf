/** Links and pictures of the conversation's own files. Invariant: they are fetched with the token, never linked to. */
import { type ReactNode, useEffect, useState } from "react";
import { artifactPath } from "../api/native";
import { request } from "../api/connection";
import { useOpenFile } from "../files/openFile";
import { fileKindOf, mediaTypeOf } from "../files/fileKind";
import { baseName } from "../tools/kind";
import { Icon } from "../ui/Icon";

export function FileLink({ path, children }: { path: string; children?: ReactNode }) {
  const { open } = useOpenFile();
  return (
    <button type="button" className="file-link" title={path} onClick={() => open(path)}>
      <Icon name="file" size={14} /> {children ?? baseName(path)}
    </button>
  );
}

export function FilePicture({ path, alt }: { path: string; alt: string }) {
  const { threadId } = useOpenFile();
  const url = usePictureUrl(threadId, path);
  if (!url) return <FileLink path={path}>{alt || baseName(path)}</FileLink>;
  return <img className="picture" src={url} alt={alt} />;
}

function usePictureUrl(threadId: string | null, path: string): string | null {
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    if (!threadId || fileKindOf(path) !== "picture") return;
    let made: string | null = null;
    let alive = true;
    void request(artifactPath(threadId, path)).then(async (response) => {
      if (!response.ok || !alive) return;
      made = URL.createObjectURL(new Blob([await response.arrayBuffer()], { type: mediaTypeOf(path) }));
      setUrl(made);
    });
    return () => {
      alive = false;
      if (made) URL.revokeObjectURL(made);
    };
  }, [threadId, path]);
  return url;
}
