/** A file that is written or changed, as a difference. Invariant: the failure of an edit is shown below it. */
import { useMemo } from "react";
import { textOf } from "../conversation/message";
import { FileLink } from "../markdown/FileLink";
import { useText } from "../text/language";
import { DiffView } from "./DiffView";
import { countChanges, differenceOf } from "./difference";
import type { BodyProps } from "./ToolBody";
import { text } from "./kind";
import { ResultText } from "./ResultText";

export function EditBody({ call, result }: BodyProps) {
  const t = useText();
  const before = text(call.args.old_str) || text(call.args.old_string);
  const after = text(call.args.content) || text(call.args.new_str) || text(call.args.new_string);
  const path = text(call.args.path) || text(call.args.file_path);
  const lines = useMemo(() => differenceOf(before, after), [before, after]);
  const { added, removed } = countChanges(lines);
  return (
    <>
      <p className="tool-note">
        {path && <FileLink path={path} />} <span className="diff-added-count">+{added}</span>{" "}
        <span className="diff-removed-count">−{removed}</span> {t.tool.lines(added + removed)}
      </p>
      <DiffView lines={lines} />
      {result?.status === "error" && <ResultText text={textOf(result)} bad />}
    </>
  );
}
