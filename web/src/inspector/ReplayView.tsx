/** A run once more, step by step, from its log. Invariant: no model is asked, no tool is called, nothing is written. */
import { useEffect, useState } from "react";
import { type ChatMessage, reasoningOf, textOf, toolCallsOf } from "../conversation/message";
import { Markdown } from "../markdown/Markdown";
import { useText } from "../text/language";
import { Button, IconButton } from "../ui/Button";
import { useMoney } from "../usage/models";
import { pauseBefore } from "./pace";
import { StateView } from "./StateView";
import { type RawState, readableDuration, type RunSteps, type Step } from "./steps";

interface Props {
  run: RunSteps;
  stateOf(step: Step): RawState | undefined;
  onFork(step: Step): void;
}

const SPEEDS = [1, 2, 4, 8];

export function ReplayView({ run, stateOf, onFork }: Props) {
  const t = useText();
  const money = useMoney();
  const words = t.around.replay;
  const steps = [...run.steps].reverse();
  const [at, setAt] = useState(0);
  const [playing, setPlaying] = useState(true);
  const [speed, setSpeed] = useState(1);
  const [state, setState] = useState(false);
  const step = steps[at];
  const next = steps[at + 1];
  useEffect(() => {
    if (!playing) return;
    if (!next) return setPlaying(false);
    const timer = setTimeout(() => setAt(at + 1), pauseBefore(next) / speed);
    return () => clearTimeout(timer);
  }, [playing, at, next, speed]);
  if (!step) return null;
  const go = (to: number) => {
    setPlaying(false);
    setAt(Math.min(Math.max(to, 0), steps.length - 1));
  };
  const spent = steps.slice(0, at + 1);
  const tokens = spent.reduce((sum, one) => sum + one.tokens, 0);
  const cost = spent.reduce<number | null>((sum, one) => (one.cost === null ? sum : (sum ?? 0) + one.cost), null);
  const passed = step.at - (steps[0]?.at ?? step.at);
  return (
    <div className="replay">
      <p className="panel-note">{words.note}</p>
      <div className="replay-bar" role="group" aria-label={words.title}>
        <IconButton label={words.first} icon="again" disabled={at === 0} onClick={() => go(0)} />
        <IconButton label={words.previous} icon="back" disabled={at === 0} onClick={() => go(at - 1)} />
        <IconButton
          label={playing ? words.pause : words.play}
          icon={playing ? "pause" : "play"}
          onClick={() => {
            if (!playing && !next) setAt(0);
            setPlaying(!playing);
          }}
        />
        <IconButton label={words.next} icon="chevron" disabled={!next} onClick={() => go(at + 1)} />
        <input
          type="range"
          min={0}
          max={steps.length - 1}
          value={at}
          aria-label={t.inspector.step}
          aria-valuetext={words.position(at + 1, steps.length)}
          onChange={(event) => go(Number(event.target.value))}
        />
        <select
          className="field"
          aria-label={words.speed}
          value={speed}
          onChange={(event) => setSpeed(Number(event.target.value))}
        >
          {SPEEDS.map((one) => (
            <option key={one} value={one}>
              {one}×
            </option>
          ))}
        </select>
      </div>
      <p className="step-facts" role="status">
        {[
          words.position(at + 1, steps.length),
          readableDuration(passed),
          tokens > 0 && t.tool.tokens(tokens.toLocaleString()),
          cost !== null && `${t.around.inspector.cost} ${money(cost)}`,
        ]
          .filter(Boolean)
          .join(" · ")}
      </p>
      <ol className="replay-log">
        {spent.flatMap((one, index) =>
          one.messages.map((message, position) => (
            <li key={`${one.checkpointId}:${position}`} className={index === at ? "replay-now" : undefined}>
              <Said message={message} />
            </li>
          )),
        )}
      </ol>
      <div className="step-actions">
        <Button small look="plain" aria-expanded={state} onClick={() => setState(!state)}>
          {t.inspector.state}
        </Button>
        <Button small look="plain" icon="branch" title={t.inspector.forkHint} onClick={() => onFork(step)}>
          {t.inspector.fork}
        </Button>
      </div>
      {state && <StateView state={stateOf(step)} />}
    </div>
  );
}

function Said({ message }: { message: ChatMessage }) {
  const t = useText();
  const text = textOf(message);
  const reasoning = reasoningOf(message);
  if (message.type === "tool") {
    return (
      <>
        <h4>{message.name ?? t.tool.result}</h4>
        <pre className="tool-text scroll-thin" tabIndex={0}>
          {text.slice(0, 4000)}
        </pre>
      </>
    );
  }
  return (
    <>
      <h4>{message.type === "human" ? t.message.you : t.message.assistant}</h4>
      {reasoning && (
        <details>
          <summary>{t.message.reasoning}</summary>
          <p className="lines">{reasoning.slice(0, 4000)}</p>
        </details>
      )}
      {text && (message.type === "human" ? <p dir="auto">{text.slice(0, 4000)}</p> : <Markdown text={text} />)}
      {toolCallsOf(message).map((call, index) => (
        <p key={call.id ?? index} className="step-added">
          {t.around.replay.calls} <code>{call.name}</code> <code>{JSON.stringify(call.args).slice(0, 400)}</code>
        </p>
      ))}
    </>
  );
}
