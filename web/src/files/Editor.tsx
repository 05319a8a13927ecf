/**
 * Edits a text of the thread.
 *
 * Invariant: what was typed is never lost to what the agent does meanwhile; it is saved over another version only by
 * somebody who has seen it.
 */
import { useEffect, useState } from "react";
import { readFailure } from "../api/failure";
import { NativeError, saveArtifact } from "../api/native";
import { useText } from "../text/language";
import { DiffView } from "../tools/DiffView";
import { differenceOf } from "../tools/difference";
import { baseName } from "../tools/kind";
import { Button } from "../ui/Button";
import { say } from "../ui/toast";
import { fetchFile } from "./useFile";

interface Props {
  threadId: string;
  path: string;
  blob: Blob;
  sha256: string;
  onReload(): void;
}

/** What the text was made from. */
interface Base {
  text: string;
  sha256: string;
}

export function Editor({ threadId, path, blob, sha256, onReload }: Props) {
  const [newest, setNewest] = useState<Base | null>(null);
  useEffect(() => {
    let alive = true;
    // Text and hash change together: a hash beside another text would let it overwrite what nobody saw.
    void blob.text().then((text) => alive && setNewest({ text, sha256 }));
    return () => {
      alive = false;
    };
  }, [blob, sha256]);
  return newest && <Draft threadId={threadId} path={path} newest={newest} onReload={onReload} />;
}

function Draft({ threadId, path, newest, onReload }: Omit<Props, "blob" | "sha256"> & { newest: Base }) {
  const t = useText();
  const [base, setBase] = useState(newest);
  const [draft, setDraft] = useState(newest.text);
  const [problem, setProblem] = useState<string | null>(null);
  const [theirs, setTheirs] = useState<Base | null>(null);
  const [saving, setSaving] = useState(false);
  const touched = draft !== base.text;
  const [seen, setSeen] = useState(newest);
  if (newest !== seen) {
    setSeen(newest);
    // Nothing was typed: the newest version is what there is to edit.
    if (!touched) {
      setBase(newest);
      setDraft(newest.text);
    }
  }
  const save = async (over: Base) => {
    setSaving(true);
    setProblem(null);
    setTheirs(null);
    try {
      const saved = await saveArtifact(threadId, path, draft, over.sha256);
      if (!saved) return setProblem(t.files.unavailable);
      setBase({ text: draft, sha256: saved.sha256 });
      say(t.files.saved);
      onReload();
    } catch (error) {
      const status = error instanceof NativeError ? error.status : 0;
      if (status === 412) await compare();
      else setProblem(status === 409 ? t.around.files.locked : readFailure(error).detail);
    } finally {
      setSaving(false);
    }
  };
  const compare = async () => {
    setProblem(t.files.conflict);
    const now = await fetchFile(threadId, path);
    if (now.state === "loaded") setTheirs({ text: await now.blob.text(), sha256: now.sha256 });
  };
  const take = (other: Base) => {
    setBase(other);
    setDraft(other.text);
    setTheirs(null);
    setProblem(null);
    onReload();
  };
  return (
    <div className="editor">
      <textarea
        className="field editor-text"
        aria-label={baseName(path)}
        value={draft}
        spellCheck={false}
        dir="auto"
        onChange={(event) => setDraft(event.target.value)}
      />
      {touched && !problem && (
        <p className="panel-note" role="status">
          {newest.sha256 === base.sha256 ? t.around.files.unsaved : t.around.files.changedMeanwhile}
        </p>
      )}
      {problem && (
        <p className="tool-note tool-note-bad" role="alert">
          {problem}
        </p>
      )}
      {theirs && (
        <>
          <p className="panel-note">{t.around.files.theirs}</p>
          <DiffView lines={differenceOf(theirs.text, draft)} />
        </>
      )}
      <div className="dialog-actions">
        {theirs ? (
          <>
            <Button onClick={() => take(theirs)}>{t.around.files.takeTheirs}</Button>
            <Button look="danger" disabled={saving} onClick={() => void save(theirs)}>
              {t.around.files.overwrite}
            </Button>
          </>
        ) : (
          <Button look="primary" disabled={saving || !touched} onClick={() => void save(base)}>
            {t.save}
          </Button>
        )}
      </div>
    </div>
  );
}
