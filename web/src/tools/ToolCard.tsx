/**
 * One tool call: what it is about on one line, everything else inside.
 *
 * Invariant: open while it fails or asks, closed when all is well; a person's choice wins over both.
 */
import { memo, useId, useState } from "react";
import { useText } from "../text/language";
import { Icon, type IconName } from "../ui/Icon";
import { kindOf, labelOf, speaks, subjectOf, type ToolKind } from "./kind";
import { hasFailed } from "./results";
import { type BodyProps, ToolBody } from "./ToolBody";
import "./tools.css";

const ICONS: Record<ToolKind, IconName> = {
  command: "terminal",
  write: "file",
  replace: "edit",
  read: "file",
  delete: "trash",
  find: "search",
  "web-search": "globe",
  "web-fetch": "globe",
  "image-search": "image",
  todos: "list",
  subagent: "people",
  present: "files",
  image: "image",
  clarification: "question",
  generic: "tool",
};

/** What one wants to see without asking. */
const OPEN_KINDS: readonly ToolKind[] = ["subagent", "present"];

export const ToolCard = memo(function ToolCard({ call, result, active, runId }: BodyProps) {
  const t = useText();
  const id = useId();
  const kind = kindOf(call);
  const failed = hasFailed(kind, result);
  const [chosen, setChosen] = useState<boolean | null>(null);
  const running = result === undefined && active;
  const open = chosen ?? (OPEN_KINDS.includes(kind) || (running && kind === "command"));
  const status = result ? (failed ? "failed" : "done") : active ? "running" : "waiting";
  const verb = kind === "generic" ? `${t.tool.kinds.generic} ${call.name}` : t.tool.kinds[kind];
  return (
    <section className={`tool tool-${status}`} aria-label={`${verb} ${subjectOf(call)}`}>
      <button
        type="button"
        className="tool-head"
        aria-expanded={open}
        aria-controls={id}
        onClick={() => setChosen(!open)}
      >
        <Icon name={ICONS[kind]} size={16} />
        <span className="tool-verb">{labelOf(call) ?? verb}</span>
        <span className={speaks(kind) ? "tool-subject tool-subject-words" : "tool-subject"} dir="auto">
          {subjectOf(call)}
        </span>
        <ToolStatus status={status} />
        <span className={open ? "tool-chevron tool-chevron-open" : "tool-chevron"}>
          <Icon name="chevron" size={14} />
        </span>
      </button>
      {open && (
        <div id={id} className="tool-body">
          <ToolBody call={call} result={result} active={active} runId={runId} />
        </div>
      )}
    </section>
  );
});

function ToolStatus({ status }: { status: "running" | "done" | "failed" | "waiting" }) {
  const t = useText();
  return (
    <span className="tool-status">
      {status === "running" && <span className="spinner" />}
      {status === "done" && <Icon name="check" size={15} />}
      {status === "failed" && <Icon name="warning" size={15} />}
      {status === "waiting" && <Icon name="clock" size={15} />}
      <span className="unseen">{t.tool[status]}</span>
    </span>
  );
}
