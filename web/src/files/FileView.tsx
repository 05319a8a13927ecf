/** One file: preview, source, edit, download. Invariant: an edit that lost the race keeps its text. */
import { useEffect, useState } from "react";
import { NativeError, saveArtifact } from "../api/native";
import { readFailure } from "../api/failure";
import { PlainCode } from "../markdown/CodeBlock";
import { useText } from "../text/language";
import { baseName } from "../tools/kind";
import { Button } from "../ui/Button";
import { downloadBlob } from "../ui/clipboard";
import { say } from "../ui/toast";
import { extensionOf, fileKindOf, isText } from "./fileKind";
import { Preview } from "./Preview";
import { downloadFile, useFile } from "./useFile";

type Mode = "preview" | "source" | "edit";

export function FileView({ threadId, path }: { threadId: string; path: string }) {
  const t = useText();
  const { file, reload } = useFile(threadId, path);
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
            <Preview blob={file.blob} path={path} />
          ))}
      </div>
    </>
  );
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

function Source({ blob, path }: { blob: Blob; path: string }) {
  const text = useBlobText(blob);
  return text === null ? null : <PlainCode code={text} language={extensionOf(path)} />;
}

interface EditorProps {
  threadId: string;
  path: string;
  blob: Blob;
  sha256: string;
  onReload(): void;
}

function Editor({ threadId, path, blob, sha256, onReload }: EditorProps) {
  const t = useText();
  const original = useBlobText(blob);
  const [draft, setDraft] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [saving, setSaving] = useState(false);
  const text = draft ?? original ?? "";
  const save = async () => {
    setSaving(true);
    setProblem(null);
    try {
      const saved = await saveArtifact(threadId, path, text, sha256);
      if (!saved) return setProblem(t.files.unavailable);
      say(t.files.saved);
      onReload();
    } catch (error) {
      const conflict = error instanceof NativeError && (error.status === 409 || error.status === 412);
      setProblem(conflict ? t.files.conflict : readFailure(error).detail);
    } finally {
      setSaving(false);
    }
  };
  return (
    <div className="editor">
      <textarea
        className="field editor-text"
        aria-label={baseName(path)}
        value={text}
        spellCheck={false}
        dir="auto"
        onChange={(event) => setDraft(event.target.value)}
      />
      {problem && (
        <p className="tool-note tool-note-bad" role="alert">
          {problem}{" "}
          <Button small onClick={onReload}>
            {t.files.reload}
          </Button>
        </p>
      )}
      <div className="dialog-actions">
        <Button look="primary" disabled={saving || draft === null || draft === original} onClick={() => void save()}>
          {t.save}
        </Button>
      </div>
    </div>
  );
}
