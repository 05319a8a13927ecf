/**
 * A conversation on the page: its rows, what it waits for, and where the next message is written.
 *
 * Invariant: mounted anew for every conversation, so that nothing of one is left in another.
 */
import type { Client } from "@langchain/langgraph-sdk";
import { type ReactNode, type RefObject, useCallback, useEffect, useMemo, useRef } from "react";
import { readFailure } from "../api/failure";
import type { ServerInfo } from "../app/server";
import { type Panel, SidePanel } from "../app/SidePanel";
import { Welcome } from "../app/Welcome";
import { Composer, type ComposerHandle } from "../composer/Composer";
import { moveFiles, readDraft, writeDraft } from "../composer/draft";
import { QueueList } from "../composer/QueueList";
import type { Command } from "../palette/command";
import { QuestionPanel } from "../questions/QuestionPanel";
import { useText } from "../text/language";
import { todosOf } from "../tools/results";
import { Button } from "../ui/Button";
import { Icon } from "../ui/Icon";
import { say } from "../ui/toast";
import { ActivityContext } from "./activityContext";
import { branchAt } from "./branch";
import { FailureNotice } from "./FailureNotice";
import { goalOrder } from "./goal";
import { GoalChip } from "./GoalChip";
import { useStableHandlers } from "./handlers";
import { PinnedPlan } from "./PinnedPlan";
import { buildTranscript, type Transcript } from "./rows";
import { RunStatus } from "./RunStatus";
import { TranscriptView } from "./TranscriptView";
import { useBranches } from "./useBranches";
import { type Conversation, useConversation } from "./useConversation";
import { useGoal } from "./useGoal";
import { useSlow } from "./useSlow";
import { useSuggestions } from "./useSuggestions";
import { useTurns } from "./useTurns";
import "./conversation.css";

interface Props {
  client: Client;
  assistantId: string;
  assistantKnown: boolean;
  threadId: string | null;
  info: ServerInfo | null;
  commands: Command[];
  field: RefObject<HTMLTextAreaElement | null>;
  onThread(threadId: string): void;
  onOpen(threadId: string): void;
  onNew(): void;
  onReload(): void;
  onChanged(): void;
  onOffline(): void;
  onSettings(): void;
  onLookAgain(): Promise<void>;
  onBusy(busy: boolean): void;
  onPanel(panel: Panel | null): void;
  /** Above the conversation. */
  head: ReactNode;
  panel: Panel | null;
  /** Where the page finds how to stop the run. */
  stopper: RefObject<() => void>;
}

export function ConversationView(props: Props) {
  const { client, threadId, info, onThread, onChanged } = props;
  const t = useText();
  const composer = useRef<ComposerHandle>(null);
  const conversation = useConversation({ ...props, onUnsent: (text, files) => composer.current?.putBack(text, files) });
  const { messages, busy, activity, values } = conversation;
  const transcript = useTranscript(messages);
  const { turns, think, runs, facts } = useTurns(client, conversation, transcript.rows);
  const branches = useBranches(client, threadId, conversation.metadata);
  const slow = useSlow(conversation.loading);
  const { onBusy, stopper } = props;
  useEffect(() => onBusy(busy), [onBusy, busy]);
  useEffect(() => {
    stopper.current = conversation.stop;
  });
  useTitle(client, conversation, onChanged);
  const followUps = useSuggestions(conversation);

  const graph = info?.assistants.find((one) => one.id === props.assistantId)?.graph ?? props.assistantId;
  const ensureThread = useEnsureThread(client, graph, threadId, onThread);
  const goal = useGoal(client, values.goal, ensureThread);
  const { goalReached } = activity;
  useEffect(() => {
    if (goalReached) say(t.goal.reached);
  }, [goalReached, t]);
  const changeGoal = (objective: string | null) =>
    void goal.change(objective).then(
      () => say(objective === null ? t.goal.cleared : t.goal.kept),
      (error: unknown) => (readFailure(error).kind === "refused" ? say(t.goal.off) : complain(error)),
    );
  const commands: Command[] = [
    ...props.commands,
    {
      id: "goal",
      title: t.goal.command,
      slash: "goal",
      insert: "/goal ",
      run: () => undefined,
      take(words) {
        const order = goalOrder(words);
        if (order.kind === "show") say(goal.goal ? `${t.goal.title}: ${goal.goal.objective}` : t.goal.none);
        else changeGoal(order.kind === "set" ? order.objective : null);
      },
    },
  ];
  const handlers = useStableHandlers({
    editAndAsk: (id, text) => void conversation.editAndAsk(id, text).catch(complain),
    regenerate: (id) => void conversation.regenerate(id).catch(complain),
    answer: conversation.answer,
    branch: (id) => {
      if (!threadId) return;
      branchAt(client, threadId, id, messages).then(props.onOpen, complain);
    },
    open: props.onOpen,
    go: (checkpointId) => void conversation.go(checkpointId).catch(complain),
    rate: (runId, opinion) => void think(runId, opinion).then(() => opinion && say(t.message.thanks), complain),
  });
  const startAnew = () => {
    writeDraft(null, readDraft(threadId));
    moveFiles(composer.current?.files() ?? []);
    props.onNew();
  };
  const unanswered =
    !busy &&
    !conversation.loading &&
    !conversation.failure &&
    conversation.questions.length === 0 &&
    conversation.queue.length === 0 &&
    transcript.rows.at(-1)?.kind === "human";
  const empty = transcript.rows.length === 0 && !conversation.loading && !conversation.failure && !busy;
  return (
    <>
      <main className="shell-main">
        {props.head}
        <div className="conversation">
          <ActivityContext value={activity}>
            {empty ? (
              <div className="transcript scroll-thin">
                <Welcome info={info} onTry={(prompt) => conversation.send(prompt)} onLookAgain={props.onLookAgain} />
              </div>
            ) : (
              <TranscriptView
                transcript={transcript}
                busy={busy}
                turns={turns}
                runs={runs}
                asking={conversation.questions.length > 0}
                forks={conversation.forks}
                branches={branches}
                handlers={handlers}
              >
                {conversation.loading && (
                  <p className="run-status" role="status">
                    <span className="spinner" /> {slow ? t.turn.slowServer : t.message.loading}
                  </p>
                )}
                {busy && <RunStatus activity={activity} sending={conversation.sending} />}
                {unanswered && conversation.retry && (
                  <p className="unanswered">
                    {conversation.lastRun && facts.get(conversation.lastRun)?.stopped && (
                      <span className="stopped">
                        <Icon name="stop" size={13} /> {t.turn.stopped}
                      </span>
                    )}
                    <Button small icon="again" onClick={conversation.retry}>
                      {t.turn.answerThis}
                    </Button>
                  </p>
                )}
                {conversation.failure && (
                  <FailureNotice
                    failure={conversation.failure}
                    onRetry={conversation.retry ?? undefined}
                    onSettings={props.onSettings}
                    onNew={startAnew}
                  />
                )}
                {conversation.questions.length > 0 && (
                  <QuestionPanel
                    key={conversation.questions.map((question) => question.id ?? "").join()}
                    questions={conversation.questions}
                    onResume={conversation.resume}
                  />
                )}
                {!busy && followUps.length > 0 && (
                  <div className="suggestions">
                    {followUps.map((text) => (
                      <button key={text} type="button" className="suggestion" onClick={() => conversation.send(text)}>
                        {text}
                      </button>
                    ))}
                  </div>
                )}
              </TranscriptView>
            )}
          </ActivityContext>
          <div className="conversation-foot">
            <PinnedPlan todos={todosOf(values.todos)} busy={busy} />
            {goal.goal && <GoalChip goal={goal.goal} onClear={() => changeGoal(null)} />}
            <QueueList queue={conversation.queue} onRemove={(runId) => void conversation.unqueue(runId)} />
            <Composer
              threadId={threadId}
              busy={busy}
              canPolish={info?.canPolish === true}
              models={info?.models ?? null}
              commands={commands}
              handle={composer}
              field={props.field}
              ensureThread={ensureThread}
              onSend={conversation.send}
              onStop={conversation.stop}
            />
          </div>
        </div>
      </main>
      {props.panel && (
        <SidePanel
          panel={props.panel}
          client={client}
          conversation={conversation}
          onPanel={props.onPanel}
          onOpen={props.onOpen}
        />
      )}
    </>
  );

  function complain(error: unknown): void {
    const failure = readFailure(error);
    say(`${t.failures[failure.kind].title}. ${failure.detail.slice(0, 120)}`);
  }
}

function useTranscript(messages: Conversation["messages"]): Transcript {
  const previous = useRef<Transcript | undefined>(undefined);
  return useMemo(() => {
    previous.current = buildTranscript(messages, previous.current);
    return previous.current;
  }, [messages]);
}

/** A title the agent found goes to where the list reads it, unless a person gave one. */
function useTitle(client: Client, { threadId, values, metadata, busy }: Conversation, onChanged: () => void): void {
  const { title } = values;
  useEffect(() => {
    if (!threadId || busy || typeof title !== "string" || title === "") return;
    if (metadata.title === title || metadata.title_by === "user") return;
    client.threads.update(threadId, { metadata: { title } }).then(onChanged, () => undefined);
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [threadId, title, busy]);
}

/** The agent that will work on it knows how its state is written, before it has said a word. */
function useEnsureThread(client: Client, graphId: string, threadId: string | null, onThread: (id: string) => void) {
  const making = useRef<Promise<string> | null>(null);
  return useCallback((): Promise<string> => {
    if (threadId) return Promise.resolve(threadId);
    making.current ??= client.threads.create({ graphId }).then(({ thread_id }) => {
      onThread(thread_id);
      return thread_id;
    });
    return making.current;
  }, [client, graphId, threadId, onThread]);
}
