/** Shows a file by its kind. Invariant: everything in it is foreign; active content stays in its frame. */
import { useEffect, useState } from "react";
import { installSkill } from "../api/around";
import { readFailure } from "../api/failure";
import { PageFrame } from "../frames/PageFrame";
import { PlainCode } from "../markdown/CodeBlock";
import { Markdown } from "../markdown/Markdown";
import { useText } from "../text/language";
import { baseName } from "../tools/kind";
import { Button } from "../ui/Button";
import { say } from "../ui/toast";
import { extensionOf, fileKindOf, looksLikeText } from "./fileKind";
import { useBlobText, useFile } from "./useFile";
import { parseTable } from "./table";

export function Preview({ threadId, blob, path }: { threadId: string; blob: Blob; path: string }) {
  switch (fileKindOf(path)) {
    case "markdown":
    case "code":
    case "html":
    case "table":
      return <TextPreview blob={blob} path={path} />;
    case "picture":
      return <BlobUrl blob={blob}>{(url) => <img className="picture" src={url} alt={baseName(path)} />}</BlobUrl>;
    case "pdf":
      return (
        <BlobUrl blob={blob}>{(url) => <iframe className="page-frame" src={url} title={baseName(path)} />}</BlobUrl>
      );
    case "audio":
      return (
        <BlobUrl blob={blob}>
          {(url) => <audio className="sound" controls src={url} aria-label={baseName(path)} />}
        </BlobUrl>
      );
    case "video":
      return (
        <BlobUrl blob={blob}>
          {(url) => <video className="picture" controls src={url} aria-label={baseName(path)} />}
        </BlobUrl>
      );
    case "skill":
      return <SkillPreview threadId={threadId} path={path} />;
    case "other":
      return <UnknownPreview blob={blob} />;
  }
}

function TextPreview({ blob, path }: { blob: Blob; path: string }) {
  const text = useBlobText(blob);
  if (text === null) return null;
  switch (fileKindOf(path)) {
    case "markdown":
      return <Markdown text={text} />;
    case "html":
      return <PagePreview html={text} path={path} />;
    case "table":
      return <TablePreview text={text} separator={extensionOf(path) === "tsv" ? "\t" : ","} />;
    default:
      return <PlainCode code={text} language={extensionOf(path)} />;
  }
}

const LOOKED_AT = 4096;
const SHOWN = 1 << 20;

/** Words are shown, whatever their file is called. */
function UnknownPreview({ blob }: { blob: Blob }) {
  const t = useText();
  const [text, setText] = useState<string | null | undefined>(undefined);
  useEffect(() => {
    let alive = true;
    const read = async () => {
      const head = new Uint8Array(await blob.slice(0, LOOKED_AT).arrayBuffer());
      const found = looksLikeText(head) ? await blob.slice(0, SHOWN).text() : null;
      if (alive) setText(found);
    };
    void read();
    return () => {
      alive = false;
    };
  }, [blob]);
  if (text === undefined) return null;
  return text === null ? <p className="panel-note">{t.files.noPreview}</p> : <PlainCode code={text} language="" />;
}

/** What its `SKILL.md` says, and taking it in. */
function SkillPreview({ threadId, path }: { threadId: string; path: string }) {
  const t = useText();
  const { file } = useFile(threadId, `${path}/SKILL.md`);
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const install = async () => {
    setBusy(true);
    setProblem(null);
    try {
      say(t.around.skills.installed(await installSkill(threadId, path)));
    } catch (error) {
      setProblem(readFailure(error).detail);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <p>
        <Button icon="plus" disabled={busy} onClick={() => void install()}>
          {t.around.files.installSkill}
        </Button>
      </p>
      {problem && (
        <p className="tool-note tool-note-bad lines" role="alert">
          {problem}
        </p>
      )}
      {file.state === "loaded" ? (
        <TextPreview blob={file.blob} path="SKILL.txt" />
      ) : (
        <p className="panel-note">{file.state === "loading" ? t.files.loading : t.files.noPreview}</p>
      )}
    </>
  );
}

function PagePreview({ html, path }: { html: string; path: string }) {
  const t = useText();
  const [scripts, setScripts] = useState(false);
  return (
    <div className="page-preview">
      {!scripts && /<script|\son\w+=/i.test(html) && (
        <p className="panel-note run-scripts">
          <Button small onClick={() => setScripts(true)}>
            {t.files.runScripts}
          </Button>
          <span>{t.files.runScriptsHint}</span>
        </p>
      )}
      <PageFrame html={html} scripts={scripts} title={baseName(path)} />
    </div>
  );
}

function TablePreview({ text, separator }: { text: string; separator: "," | "\t" }) {
  const t = useText();
  const table = parseTable(text, separator);
  return (
    <>
      <div className="markdown-table scroll-thin" tabIndex={0}>
        <table className="table">
          <thead>
            <tr>
              {table.header.map((cell, index) => (
                <th key={index} scope="col">
                  {cell}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {table.rows.map((row, index) => (
              <tr key={index}>
                {row.map((cell, column) => (
                  <td key={column} className={isFigure(cell) ? "figure" : undefined}>
                    {cell}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {table.cut && <p className="panel-note">{t.files.rowsCut(table.rows.length)}</p>}
    </>
  );
}

/** Figures stand below each other by their last digit. */
const isFigure = (cell: string) => /^[-+−]?[\d.,\s]*\d\s*%?$/.test(cell.trim());

function BlobUrl({ blob, children }: { blob: Blob; children(url: string): React.ReactNode }) {
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    const made = URL.createObjectURL(blob);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [blob]);
  return url ? <>{children(url)}</> : null;
}
