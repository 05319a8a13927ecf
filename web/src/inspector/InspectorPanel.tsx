/** The run, step by step: when, how long, how many tokens, and a way back to each. Invariant: reading changes nothing. */
import type { Client } from "@langchain/langgraph-sdk";
import { useEffect, useState } from "react";
import { readFailure } from "../api/failure";
import { branchFromCheckpoint } from "../conversation/branch";
import type { Conversation } from "../conversation/useConversation";
import { useText } from "../text/language";
import { Button, IconButton } from "../ui/Button";
import { say } from "../ui/toast";
import { type RawState, readableDuration, type Step, stepsOf } from "./steps";
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
  const [shown, setShown] = useState<string | null>(null);
  const steps = stepsOf(states);
  const longest = Math.max(1, ...steps.map((step) => step.took ?? 0));
  const fork = (step: Step) => {
    if (!threadId) return;
    branchFromCheckpoint(client, threadId, step.checkpointId, null).then(onOpen, (error: unknown) =>
      say(readFailure(error).detail),
    );
  };
  return (
    <aside className="panel" aria-label={t.inspector.title}>
      <header className="panel-head">
        <h2>{t.inspector.title}</h2>
        <IconButton label={t.close} icon="close" onClick={onClose} />
      </header>
      <div className="panel-body scroll-thin">
        <UsageView threadId={threadId} messages={messages} busy={busy} />
        {steps.length === 0 && <p className="panel-note">{t.inspector.empty}</p>}
        <ol className="steps">
          {steps.map((step, index) => (
            <li key={step.checkpointId} className="step">
              <div className="step-head">
                <strong>
                  {t.inspector.step} {step.number}
                </strong>
                <span className="step-kind">{step.source}</span>
                <time dateTime={new Date(step.at).toISOString()}>{new Date(step.at).toLocaleTimeString()}</time>
              </div>
              {step.took !== null && (
                <p className="step-facts">
                  <meter min={0} max={longest} value={step.took} aria-label={t.inspector.took} />
                  {readableDuration(step.took)}
                  {step.tokens > 0 && ` · ${t.tool.tokens(step.tokens.toLocaleString())}`}
                </p>
              )}
              {step.added.map((line, position) => (
                <p key={position} className="step-added" dir="auto">
                  {line}
                </p>
              ))}
              {step.next.length > 0 && (
                <p className="step-facts">
                  {t.inspector.next}: {step.next.join(", ")}
                </p>
              )}
              <div className="step-actions">
                <Button
                  small
                  look="plain"
                  aria-expanded={shown === step.checkpointId}
                  onClick={() => setShown(shown === step.checkpointId ? null : step.checkpointId)}
                >
                  {t.inspector.state}
                </Button>
                <Button small look="plain" icon="branch" title={t.inspector.forkHint} onClick={() => fork(step)}>
                  {t.inspector.fork}
                </Button>
              </div>
              {shown === step.checkpointId && (
                <pre className="tool-text scroll-thin" tabIndex={0}>
                  {JSON.stringify(states[index]?.values, null, 2).slice(0, 20_000)}
                </pre>
              )}
            </li>
          ))}
        </ol>
        {more && (
          <Button small onClick={loadMore}>
            {t.inspector.older}
          </Button>
        )}
      </div>
    </aside>
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
