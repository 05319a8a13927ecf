/** What the agent said and did in one step. Invariant: drawn again only when it or its results change. */
import { memo, useState } from "react";
import type { Fork } from "../api/conversation";
import { Markdown } from "../markdown/Markdown";
import { clarificationOf } from "../questions/clarification";
import { ClarificationCard } from "../questions/ClarificationCard";
import { useText } from "../text/language";
import { ToolCard } from "../tools/ToolCard";
import { IconButton } from "../ui/Button";
import { Icon } from "../ui/Icon";
import { BranchMenu } from "./BranchLinks";
import { Feedback, FeedbackComment } from "./Feedback";
import type { RowHandlers } from "./handlers";
import { MessageActions } from "./MessageActions";
import { type ChatMessage, reasoningOf, textOf } from "./message";
import { Reasoning } from "./Reasoning";
import { SourceList } from "./SourceList";
import type { Answers, AssistantRow } from "./rows";
import type { Turn } from "./turns";
import { TurnUsage } from "./TurnUsage";
import type { BranchLink } from "./useBranches";
import { WaySwitch } from "./WaySwitch";

function isOpenQuestion(result: ChatMessage | undefined, answers: Answers): boolean {
  const asked = clarificationOf(result);
  return asked !== undefined && !answers.has(asked.requestId);
}

interface Props {
  row: AssistantRow;
  handlers: RowHandlers;
  answers: Answers;
  /** The run that writes it is still at work. */
  active: boolean;
  /** A question in it can still be answered. */
  newest: boolean;
  /** It waits for consent or an answer. */
  asking: boolean;
  /** The turn that it ends. */
  turn: Turn | undefined;
  runId: string | undefined;
  fork: Fork | undefined;
  branches: BranchLink[] | undefined;
}

export const AssistantMessage = memo(function AssistantMessage(props: Props) {
  const { row, handlers, answers, active, newest, asking, turn, runId, fork, branches } = props;
  const t = useText();
  const [commenting, setCommenting] = useState(false);
  const text = textOf(row.message);
  const reasoning = reasoningOf(row.message);
  const bad = row.message.invalid_tool_calls ?? [];
  const id = row.message.id;
  const asks = asking || (newest && row.calls.some(({ result }) => isOpenQuestion(result, answers)));
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
          <ToolCard key={call.id ?? index} call={call} result={result} active={active} runId={runId} />
        );
      })}
      {!active &&
        bad.map((call, index) => (
          <p key={index} className="tool-note tool-note-bad">
            {t.message.badCall}: <code>{String(call.name ?? "?")}</code>
          </p>
        ))}
      {turn?.stopped && !active && (
        <p className="stopped">
          <Icon name="stop" size={13} /> {t.turn.stopped}
        </p>
      )}
      {row.endsTurn && !active && !asks && (
        <MessageActions text={text}>
          {id && (
            <span className="when-idle">
              <IconButton small label={t.message.regenerate} icon="again" onClick={() => handlers.regenerate(id)} />
              <IconButton small label={t.message.branch} icon="branch" onClick={() => handlers.branch(id)} />
            </span>
          )}
          {turn && (
            <Feedback
              opinion={turn.opinion}
              onRate={(opinion) => {
                setCommenting(opinion !== null);
                handlers.rate(turn.runId, opinion);
              }}
            />
          )}
          {branches && <BranchMenu branches={branches} onOpen={handlers.open} />}
          {turn && <TurnUsage turn={turn} />}
        </MessageActions>
      )}
      {fork && !active && <WaySwitch fork={fork} onSwitch={handlers.go} />}
      {commenting && turn?.opinion && (
        <FeedbackComment
          opinion={turn.opinion}
          onRate={(opinion) => handlers.rate(turn.runId, opinion)}
          onClose={() => setCommenting(false)}
        />
      )}
    </article>
  );
});
