/** One file: preview, source, edit, download. Invariant: an edit that lost the race keeps its text. */
import { useState } from "react";
import { PlainCode } from "../markdown/CodeBlock";
import { useText } from "../text/language";
import { baseName } from "../tools/kind";
import { Button } from "../ui/Button";
import { downloadBlob } from "../ui/clipboard";
import { say } from "../ui/toast";
import { Editor } from "./Editor";
import { extensionOf, fileKindOf, isText } from "./fileKind";
import { Preview } from "./Preview";
import { downloadFile, useBlobText, useFile } from "./useFile";

type Mode = "preview" | "source" | "edit";

export function FileView({ threadId, path, busy }: { threadId: string; path: string; busy: boolean }) {
  const t = useText();
  const { file, reload } = useFile(threadId, path, busy);
  const [mode, setMode] = useState<Mode>("preview");
  const kind = fileKindOf(path);
  const editable = file.state === "loaded" && isText(kind) && file.blob.size < 2 << 20;
  const download = async () => {
    const blob = file.state === "loaded" ? file.blob : await downloadFile(threadId, path);
    if (blob) downloadBlob(baseName(path), blob);
    else say(t.files.missing);
  };
  return (
    <>
      <div className="panel-tools">
        {isText(kind) && kind !== "code" && (
          <Button
            small
            look="plain"
            aria-pressed={mode === "source"}
            onClick={() => setMode(mode === "source" ? "preview" : "source")}
          >
            {mode === "source" ? t.files.preview : t.files.source}
          </Button>
        )}
        {editable && (
          <Button
            small
            look="plain"
            icon="edit"
            aria-pressed={mode === "edit"}
            onClick={() => setMode(mode === "edit" ? "preview" : "edit")}
          >
            {t.edit}
          </Button>
        )}
        {file.state !== "unavailable" && (
          <Button small look="plain" icon="download" onClick={() => void download()}>
            {t.download}
          </Button>
        )}
      </div>
      <div className="panel-body scroll-thin">
        {file.state === "loading" && <p className="panel-note">{t.files.loading}</p>}
        {file.state === "missing" && <p className="panel-note">{t.files.missing}</p>}
        {file.state === "unavailable" && <p className="panel-note">{t.files.unavailable}</p>}
        {file.state === "too-large" && <p className="panel-note">{t.files.tooLarge}</p>}
        {file.state === "loaded" &&
          (mode === "edit" ? (
            <Editor threadId={threadId} path={path} blob={file.blob} sha256={file.sha256} onReload={reload} />
          ) : mode === "source" ? (
            <Source blob={file.blob} path={path} />
          ) : (
            <Preview threadId={threadId} blob={file.blob} path={path} />
          ))}
      </div>
    </>
  );
}

function Source({ blob, path }: { blob: Blob; path: string }) {
  const text = useBlobText(blob);
  return text === null ? null : <PlainCode code={text} language={extensionOf(path)} />;
}
