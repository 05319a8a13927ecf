/** What was found among the files. Invariant: a line in no known shape is shown as it is. */
import { textOf } from "../conversation/message";
import { FileLink } from "../markdown/FileLink";
import { GenericBody } from "./GenericBody";
import { shortPath } from "./kind";
import { ResultText } from "./ResultText";
import { type FoundLine, foundLines } from "./results";
import type { BodyProps } from "./ToolBody";

/** What one can take in; the rest is text below. */
const MOST = 100;

export function FindBody(props: BodyProps) {
  const { result } = props;
  if (!result) return <GenericBody {...props} />;
  const text = textOf(result);
  const found = result.status === "error" ? null : foundLines(text);
  if (!found || found.lines.length > MOST) return <ResultText text={text} bad={result.status === "error"} />;
  return (
    <>
      {found.about && <p className="tool-note">{found.about.replace("/mnt/user-data/", "")}</p>}
      <ul className="found">
        {found.lines.map((line, index) => (
          <li key={index}>
            <Found line={line} />
          </li>
        ))}
      </ul>
    </>
  );
}

/** A file of the conversation, which can be opened. */
const isOwn = (path: string) => path.startsWith("/mnt/user-data/") && !path.endsWith("/");

function Found({ line }: { line: FoundLine }) {
  return (
    <>
      {isOwn(line.path) ? <FileLink path={line.path}>{shortPath(line.path)}</FileLink> : <code>{line.path}</code>}
      {line.number !== null && <span className="found-number">{line.number}</span>}
      {line.text && (
        <code className="found-text" dir="auto">
          {line.text}
        </code>
      )}
    </>
  );
}
