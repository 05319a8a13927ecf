/** What the agent said and did in one step. Invariant: drawn again only when it or its results change. */
import { memo } from "react";
import { Markdown } from "../markdown/Markdown";
import { clarificationOf } from "../questions/clarification";
import { ClarificationCard } from "../questions/ClarificationCard";
import { useText } from "../text/language";
import { ToolCard } from "../tools/ToolCard";
import { IconButton } from "../ui/Button";
import type { RowHandlers } from "./handlers";
import { MessageActions } from "./MessageActions";
import { reasoningOf, textOf } from "./message";
import { Reasoning } from "./Reasoning";
import { SourceList } from "./SourceList";
import type { Answers, AssistantRow } from "./rows";

interface Props {
  row: AssistantRow;
  handlers: RowHandlers;
  answers: Answers;
  /** The run that writes it is still at work. */
  active: boolean;
  /** It is the newest answer: it can be rated. */
  newest: boolean;
  canRate: boolean;
}

export const AssistantMessage = memo(function AssistantMessage(props: Props) {
  const { row, handlers, answers, active, newest, canRate } = props;
  const t = useText();
  const text = textOf(row.message);
  const reasoning = reasoningOf(row.message);
  const bad = row.message.invalid_tool_calls ?? [];
  const id = row.message.id;
  return (
    <article className="message message-assistant" aria-label={t.message.assistant}>
      {reasoning && <Reasoning text={reasoning} active={active && text === "" && row.calls.length === 0} />}
      {text && <Markdown text={text} />}
      {text && !active && <SourceList text={text} />}
      {row.calls.map(({ call, result }, index) => {
        const asked = clarificationOf(result);
        return asked ? (
          <ClarificationCard
            key={call.id ?? index}
            asked={asked}
            answered={answers.get(asked.requestId)}
            open={newest && !active}
            onAnswer={handlers.answer}
          />
        ) : (
          <ToolCard key={call.id ?? index} call={call} result={result} active={active} />
        );
      })}
      {!active &&
        bad.map((call, index) => (
          <p key={index} className="tool-note tool-note-bad">
            {t.message.badCall}: <code>{String(call.name ?? "?")}</code>
          </p>
        ))}
      {row.endsTurn && !active && (
        <MessageActions text={text}>
          {id && (
            <>
              <IconButton small label={t.message.regenerate} icon="again" onClick={() => handlers.regenerate(id)} />
              <IconButton small label={t.message.branch} icon="branch" onClick={() => handlers.branch(id)} />
            </>
          )}
          {newest && canRate && (
            <>
              <IconButton small label={t.message.good} icon="up" onClick={() => handlers.rate(1)} />
              <IconButton small label={t.message.bad} icon="down" onClick={() => handlers.rate(-1)} />
            </>
          )}
        </MessageActions>
      )}
    </article>
  );
});
