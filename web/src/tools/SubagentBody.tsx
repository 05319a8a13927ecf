/** Work handed to a subagent: its task, its steps as they happen, its result. Invariant: the result outlives the steps. */
import { useEffect, useState } from "react";
import type { SubagentStep } from "../conversation/activity";
import { useActivity } from "../conversation/activityContext";
import { textOf } from "../conversation/message";
import { readableDuration } from "../inspector/steps";
import { Markdown } from "../markdown/Markdown";
import { useText } from "../text/language";
import { Button } from "../ui/Button";
import { useModelName } from "../usage/models";
import type { BodyProps } from "./ToolBody";
import { delegation } from "./delegation";
import { text } from "./kind";
import { useSubagentSteps } from "./useSubagentSteps";

export function SubagentBody({ call, result, active, runId }: BodyProps) {
  const t = useText();
  const activity = useActivity();
  const modelName = useModelName();
  const told = activity.subagents[call.id ?? ""];
  const heard = told?.steps ?? activity.inner[call.id ?? ""];
  const steps = useSubagentSteps(heard, result && runId, call.id);
  const prompt = text(call.args.prompt) || text(call.args.description);
  const ended = delegation(result);
  const status = ended.status ?? told?.status ?? (active && !result ? "running" : undefined);
  const tokens = ended.tokens ?? told?.tokens;
  const model = ended.model ?? told?.model;
  const facts = [
    text(call.args.subagent_type),
    model && modelName(model),
    steps.length > 0 && t.tool.steps(steps.length),
    tokens !== undefined && t.tool.tokens(tokens.toLocaleString()),
  ].filter(Boolean);
  return (
    <>
      {prompt && (
        <p className="tool-note subagent-prompt" dir="auto">
          {prompt}
        </p>
      )}
      <Steps steps={ended.said && steps.at(-1)?.text === ended.said ? steps.slice(0, -1) : steps} />
      <p className="tool-note">
        {status && <span className={`subagent-status subagent-${status}`}>{t.delegated.status[status] ?? status}</span>}
        {facts.map((fact) => ` · ${fact}`)}
        {ended.capped && ` · ${t.delegated.capped}`}
        {ended.took !== undefined ? (
          <Took ms={ended.took} />
        ) : (
          told && <Elapsed since={told.startedAt} until={told.endedAt ?? (result ? told.startedAt : undefined)} />
        )}
      </p>
      {(ended.error ?? told?.error) && (
        <p className="tool-note tool-note-bad" dir="auto">
          {ended.error ?? told?.error}
        </p>
      )}
      {result && ended.said && <Markdown text={ended.said} />}
      {result && !ended.said && !ended.error && <Markdown text={textOf(result)} />}
    </>
  );
}

const SHOWN = 5;

function Steps({ steps }: { steps: readonly SubagentStep[] }) {
  const t = useText();
  const [all, setAll] = useState(false);
  if (steps.length === 0) return null;
  const hidden = all ? 0 : Math.max(0, steps.length - SHOWN);
  return (
    <>
      {hidden > 0 && (
        <Button small look="plain" onClick={() => setAll(true)}>
          {t.delegated.earlier(hidden)}
        </Button>
      )}
      <ol className="subagent-steps" start={hidden + 1}>
        {steps.slice(hidden).map((step, index) => (
          <li key={hidden + index} dir="auto">
            {step.tools.length > 0 && <code>{step.tools.join(", ")}</code>} {step.text.slice(0, 240)}
          </li>
        ))}
      </ol>
    </>
  );
}

/** Ticks while it runs. */
function Elapsed({ since, until }: { since: number; until: number | undefined }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (until !== undefined) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [until]);
  if (until === since) return null;
  const spent = until === undefined ? Math.floor(Math.max(0, now - since) / 1000) * 1000 : until - since;
  return <Took ms={spent} />;
}

function Took({ ms }: { ms: number }) {
  return <span className="subagent-time"> · {readableDuration(ms)}</span>;
}
