/** Files that are handed over. Invariant: each opens in the side panel. */
import { textOf } from "../conversation/message";
import { FileLink } from "../markdown/FileLink";
import type { BodyProps } from "./ToolBody";
import { list } from "./kind";
import { ResultText } from "./ResultText";

export function FilesBody({ call, result }: BodyProps) {
  return (
    <>
      <ul className="presented">
        {list(call.args.filepaths).map((path) => (
          <li key={path}>
            <FileLink path={path} />
          </li>
        ))}
      </ul>
      {result?.status === "error" && <ResultText text={textOf(result)} bad />}
    </>
  );
}
