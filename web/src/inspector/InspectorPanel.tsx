/** Runs, step by step: when, how long, tokens, cost, state, and a way back to each. Invariant: reading changes nothing. */
import type { Client } from "@langchain/langgraph-sdk";
import { useEffect, useState } from "react";
import { readFailure } from "../api/failure";
import { branchFromCheckpoint } from "../conversation/branch";
import type { Conversation } from "../conversation/useConversation";
import type { Text } from "../text/en";
import { useText } from "../text/language";
import { Button, IconButton } from "../ui/Button";
import { say } from "../ui/toast";
import { useMoney } from "../usage/models";
import { ReplayView } from "./ReplayView";
import { StateView } from "./StateView";
import { type RawState, readableDuration, type RunSteps, runsOf, type Step, stepsOf } from "./steps";
import { UsageView } from "./UsageView";
import "../ui/panel.css";
import "./inspector.css";

interface Props {
  client: Client;
  conversation: Conversation;
  onOpen(threadId: string): void;
  onClose(): void;
}

const PAGE = 30;

export function InspectorPanel({ client, conversation, onOpen, onClose }: Props) {
  const t = useText();
  const { threadId, busy, messages } = conversation;
  const { states, more, loadMore } = useHistory(client, threadId, busy);
  const statuses = useStatuses(client, threadId, busy);
  const [replayed, setReplayed] = useState<string | null>(null);
  const steps = stepsOf(states);
  const runs = runsOf(steps);
  const longest = Math.max(1, ...steps.map((step) => step.took ?? 0));
  const stateOf = (step: Step) => states.find((state) => state.checkpoint?.checkpoint_id === step.checkpointId);
  const fork = (step: Step) => {
    if (!threadId) return;
    branchFromCheckpoint(client, threadId, step.checkpointId, null).then(onOpen, (error: unknown) =>
      say(readFailure(error).detail),
    );
  };
  const replay = runs.find((run) => run.runId !== null && run.runId === replayed);
  return (
    <aside className="panel" aria-label={t.inspector.title}>
      <header className="panel-head">
        {replay && <IconButton label={t.around.replay.back} icon="list" onClick={() => setReplayed(null)} />}
        <h2>{replay ? t.around.replay.title : t.inspector.title}</h2>
        <IconButton label={t.close} icon="close" onClick={onClose} />
      </header>
      <div className="panel-body scroll-thin">
        {replay ? (
          <ReplayView key={replay.runId} run={replay} stateOf={stateOf} onFork={fork} />
        ) : (
          <>
            <UsageView threadId={threadId} messages={messages} busy={busy} />
            {steps.length === 0 && <p className="panel-note">{t.inspector.empty}</p>}
            {busy && steps.length > 0 && <p className="panel-note">{t.around.inspector.unfinished}</p>}
            {runs.map((run, index) => (
              <section key={`${run.runId}:${index}`} className="run" aria-label={t.around.inspector.run}>
                <RunHead run={run} status={run.runId ? statuses.get(run.runId) : undefined}>
                  {run.runId && run.steps.length > 1 && (
                    <Button small look="plain" icon="again" onClick={() => setReplayed(run.runId)}>
                      {t.around.replay.open}
                    </Button>
                  )}
                </RunHead>
                <ol className="steps">
                  {run.steps.map((step) => (
                    <StepItem
                      key={step.checkpointId}
                      step={step}
                      state={stateOf(step)}
                      longest={longest}
                      onFork={() => fork(step)}
                    />
                  ))}
                </ol>
              </section>
            ))}
            {more && (
              <Button small onClick={loadMore}>
                {t.inspector.older}
              </Button>
            )}
          </>
        )}
      </div>
    </aside>
  );
}

function RunHead({ run, status, children }: { run: RunSteps; status: string | undefined; children: React.ReactNode }) {
  const t = useText();
  const money = useMoney();
  const facts = [
    status && (t.around.inspector.statuses[status] ?? status),
    run.steps.length > 1 && readableDuration(run.took),
    run.tokens > 0 && t.tool.tokens(run.tokens.toLocaleString()),
    run.cost !== null && `${t.around.inspector.cost} ${money(run.cost)}`,
  ];
  return (
    <div className="run-head">
      <h3>{t.around.inspector.run}</h3>
      <span className="step-facts">{facts.filter(Boolean).join(" · ")}</span>
      {children}
    </div>
  );
}

/** Who was at work, in a word. */
function kindOf(step: Step, t: Text): string {
  const spoke = step.messages.at(-1)?.type;
  return t.inspector.kinds[spoke ?? step.source] ?? step.source;
}

interface StepProps {
  step: Step;
  state: RawState | undefined;
  longest: number;
  onFork(): void;
}

function StepItem({ step, state, longest, onFork }: StepProps) {
  const t = useText();
  const money = useMoney();
  const [shown, setShown] = useState(false);
  return (
    <li className="step">
      <div className="step-head">
        <strong>
          {t.inspector.step} {step.number}
        </strong>
        <span className="step-kind">{kindOf(step, t)}</span>
        <time dateTime={new Date(step.at).toISOString()}>{new Date(step.at).toLocaleTimeString()}</time>
      </div>
      {step.took !== null && (
        <p className="step-facts">
          <meter min={0} max={longest} value={step.took} aria-label={t.inspector.took} />
          {readableDuration(step.took)}
          {step.tokens > 0 && ` · ${t.tool.tokens(step.tokens.toLocaleString())}`}
          {step.cost !== null && ` · ${t.around.inspector.cost} ${money(step.cost)}`}
        </p>
      )}
      {step.added.map((line, position) => (
        <p key={position} className="step-added" dir="auto">
          {line}
        </p>
      ))}
      {step.next.length > 0 && (
        <p className="step-facts">
          {t.inspector.next}: {step.next.map((node) => t.inspector.nodes[node] ?? node).join(", ")}
        </p>
      )}
      <div className="step-actions">
        <Button small look="plain" aria-expanded={shown} onClick={() => setShown(!shown)}>
          {t.inspector.state}
        </Button>
        <Button small look="plain" icon="branch" title={t.inspector.forkHint} onClick={onFork}>
          {t.inspector.fork}
        </Button>
      </div>
      {shown && <StateView state={state} />}
    </li>
  );
}

function useHistory(client: Client, threadId: string | null, busy: boolean) {
  const [states, setStates] = useState<RawState[]>([]);
  const [limit, setLimit] = useState(PAGE);
  useEffect(() => {
    if (!threadId || busy) return;
    let alive = true;
    client.threads.getHistory(threadId, { limit }).then(
      (found) => alive && setStates(found as unknown as RawState[]),
      () => alive && setStates([]),
    );
    return () => {
      alive = false;
    };
  }, [client, threadId, busy, limit]);
  return { states, more: states.length >= limit, loadMore: () => setLimit(limit + PAGE) };
}

/** How the newest runs ended. */
function useStatuses(client: Client, threadId: string | null, busy: boolean): Map<string, string> {
  const [statuses, setStatuses] = useState(new Map<string, string>());
  useEffect(() => {
    if (!threadId || busy) return;
    let alive = true;
    client.runs.list(threadId, { limit: PAGE }).then(
      (runs) => alive && setStatuses(new Map(runs.map((run) => [run.run_id, run.status]))),
      () => undefined,
    );
    return () => {
      alive = false;
    };
  }, [client, threadId, busy]);
  return statuses;
}
