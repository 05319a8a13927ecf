/** Asks whether tools may run. Invariant: nothing is decided for a call that a person did not decide. */
import { useId, useState } from "react";
import { useText } from "../text/language";
import { kindOf, labelOf } from "../tools/kind";
import { ToolBody } from "../tools/ToolBody";
import { Button } from "../ui/Button";
import { Icon } from "../ui/Icon";
import { Worded } from "../ui/Worded";
import type { ActionRequest, Decision } from "./approval";

export function ApprovalCard({
  actions,
  onDecide,
}: {
  actions: ActionRequest[];
  onDecide(decisions: Decision[]): void;
}) {
  const t = useText();
  const [decisions, setDecisions] = useState<ReadonlyMap<number, Decision>>(new Map());
  const decide = (index: number, decision: Decision) => {
    const next = new Map(decisions).set(index, decision);
    setDecisions(next);
    const all = actions.map((_, position) => next.get(position));
    if (all.every((one): one is Decision => one !== undefined)) onDecide(all);
  };
  const all = actions.length > 1 && actions.every((action) => action.allowed.includes("approve"));
  return (
    <section className="question question-approval" aria-label={t.approval.title}>
      <h3>
        <Icon name="warning" size={17} /> {actions.length > 1 ? t.approval.many(actions.length) : t.approval.title}
      </h3>
      {actions.map((action, index) => {
        const made = decisions.get(index);
        return made ? (
          <p key={index} className="tool-note">
            <code>{action.name}</code>: {t.approval.chosen[made.type]}
          </p>
        ) : (
          <Action key={index} action={action} onDecide={(decision) => decide(index, decision)} />
        );
      })}
      {all && decisions.size === 0 && (
        <Button look="primary" onClick={() => onDecide(actions.map(() => ({ type: "approve" })))}>
          {t.approval.approveAll}
        </Button>
      )}
    </section>
  );
}

function Action({ action, onDecide }: { action: ActionRequest; onDecide(decision: Decision): void }) {
  const t = useText();
  const [writing, setWriting] = useState<"edit" | "reject" | "respond" | null>(null);
  const may = (kind: Decision["type"]) => action.allowed.includes(kind);
  const call = { name: action.name, args: action.args };
  const kind = kindOf(call);
  return (
    <div className="approval-action">
      <p>
        <strong dir="auto">{labelOf(call) ?? (kind === "generic" ? action.name : t.tool.kinds[kind])}</strong>
      </p>
      {action.description && action.description !== `\`${action.name}\` needs approval before it runs.` && (
        <p className="tool-note" dir="auto">
          <Worded text={action.description} />
        </p>
      )}
      <ToolBody call={call} result={undefined} active={false} runId={undefined} />
      {writing === null ? (
        <div className="question-options">
          {may("approve") && (
            <Button look="primary" onClick={() => onDecide({ type: "approve" })}>
              {t.approval.approve}
            </Button>
          )}
          {may("edit") && <Button onClick={() => setWriting("edit")}>{t.approval.edit}</Button>}
          {may("respond") && <Button onClick={() => setWriting("respond")}>{t.approval.respond}</Button>}
          {may("reject") && (
            <Button look="danger" onClick={() => setWriting("reject")}>
              {t.approval.reject}
            </Button>
          )}
        </div>
      ) : writing === "edit" ? (
        <EditArguments action={action} onCancel={() => setWriting(null)} onDecide={onDecide} />
      ) : (
        <Say
          label={writing === "reject" ? t.approval.rejectReason : t.approval.respondText}
          needed={writing === "respond"}
          onCancel={() => setWriting(null)}
          onDone={(message) => onDecide({ type: writing, ...(message ? { message } : {}) })}
        />
      )}
    </div>
  );
}

function EditArguments(props: { action: ActionRequest; onCancel(): void; onDecide(decision: Decision): void }) {
  const t = useText();
  const id = useId();
  const [text, setText] = useState(JSON.stringify(props.action.args, null, 2));
  const [bad, setBad] = useState(false);
  const done = () => {
    try {
      const args: unknown = JSON.parse(text);
      if (typeof args !== "object" || args === null || Array.isArray(args)) throw new Error("not an object");
      const edited = { name: props.action.name, args: args as Record<string, unknown> };
      props.onDecide({ type: "edit", edited_action: edited });
    } catch {
      setBad(true);
    }
  };
  return (
    <div>
      <label htmlFor={id}>{t.approval.editArguments}</label>
      <textarea
        id={id}
        className="field approval-json"
        rows={Math.min(14, text.split("\n").length + 1)}
        value={text}
        autoFocus
        spellCheck={false}
        aria-invalid={bad}
        onChange={(event) => {
          setText(event.target.value);
          setBad(false);
        }}
      />
      {bad && (
        <p className="tool-note tool-note-bad" role="alert">
          {t.approval.badJson}
        </p>
      )}
      <div className="question-options">
        <Button onClick={props.onCancel}>{t.cancel}</Button>
        <Button look="primary" onClick={done}>
          {t.approval.approve}
        </Button>
      </div>
    </div>
  );
}

function Say(props: { label: string; needed: boolean; onCancel(): void; onDone(text: string): void }) {
  const t = useText();
  const id = useId();
  const [text, setText] = useState("");
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim() || !props.needed) props.onDone(text.trim());
      }}
    >
      <label htmlFor={id}>{props.label}</label>
      <input
        id={id}
        className="field"
        value={text}
        autoFocus
        dir="auto"
        onChange={(event) => setText(event.target.value)}
      />
      <div className="question-options">
        <Button onClick={props.onCancel}>{t.cancel}</Button>
        <Button look="primary" type="submit" disabled={props.needed && !text.trim()}>
          {t.question.send}
        </Button>
      </div>
    </form>
  );
}
