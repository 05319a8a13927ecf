/**
 * A conversation on the page: its rows, what it waits for, and where the next message is written.
 *
 * Invariant: mounted anew for every conversation, so that nothing of one is left in another.
 */
import type { Client } from "@langchain/langgraph-sdk";
import { type ReactNode, type RefObject, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { putFeedback, suggestions as askSuggestions } from "../api/native";
import { readFailure } from "../api/failure";
import type { ServerInfo } from "../app/server";
import { type Panel, SidePanel } from "../app/SidePanel";
import { Welcome } from "../app/Welcome";
import { Composer } from "../composer/Composer";
import { QueueList } from "../composer/QueueList";
import type { Command } from "../palette/command";
import { QuestionPanel } from "../questions/QuestionPanel";
import { settings } from "../settings/store";
import { useText } from "../text/language";
import { todosOf } from "../tools/results";
import { say } from "../ui/toast";
import { ActivityContext } from "./activityContext";
import { branchAt } from "./branch";
import { FailureNotice } from "./FailureNotice";
import { useStableHandlers } from "./handlers";
import { textOf } from "./message";
import { PinnedPlan } from "./PinnedPlan";
import { buildTranscript, type Transcript } from "./rows";
import { RunStatus } from "./RunStatus";
import { TranscriptView } from "./TranscriptView";
import { type Conversation, useConversation } from "./useConversation";
import "./conversation.css";

interface Props {
  client: Client;
  assistantId: string;
  threadId: string | null;
  info: ServerInfo | null;
  commands: Command[];
  field: RefObject<HTMLTextAreaElement | null>;
  onThread(threadId: string): void;
  onOpen(threadId: string): void;
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
  const conversation = useConversation(props);
  const { messages, busy, activity, values } = conversation;
  const transcript = useTranscript(messages);
  const { onBusy, stopper } = props;
  useEffect(() => onBusy(busy), [onBusy, busy]);
  useEffect(() => {
    stopper.current = conversation.stop;
  });
  useTitle(client, conversation, onChanged);
  const followUps = useSuggestions(conversation);

  const ensureThread = useEnsureThread(client, threadId, onThread);
  const handlers = useStableHandlers({
    editAndAsk: (id, text) => void conversation.editAndAsk(id, text).catch(complain),
    regenerate: (id) => void conversation.regenerate(id).catch(complain),
    answer: conversation.answer,
    branch: (id) => {
      if (!threadId) return;
      branchAt(client, threadId, id, messages).then((branch) => branch && props.onOpen(branch), complain);
    },
    rate: (rating) => {
      if (!threadId || !conversation.lastRun) return;
      void putFeedback(threadId, conversation.lastRun, rating)
        .then((answer) => answer !== null && say(t.message.thanks))
        .catch(complain);
    },
  });
  const view = useMemo(
    () => ({ ...activity, inner: conversation.subagentSteps }),
    // The steps are read from the stream, which changes with every message.
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [activity, messages],
  );
  const empty = transcript.rows.length === 0 && !conversation.loading && !conversation.failure && !busy;
  return (
    <>
      <main className="shell-main">
        {props.head}
        <div className="conversation">
          <ActivityContext value={view}>
            {empty ? (
              <div className="transcript scroll-thin">
                <Welcome info={info} onTry={(prompt) => conversation.send(prompt)} onLookAgain={props.onLookAgain} />
              </div>
            ) : (
              <TranscriptView
                transcript={transcript}
                busy={busy}
                canRate={info?.canRate === true && conversation.lastRun !== null}
                handlers={handlers}
              >
                {conversation.loading && (
                  <p className="run-status" role="status">
                    <span className="spinner" /> {t.message.loading}
                  </p>
                )}
                {busy && <RunStatus activity={activity} />}
                {conversation.failure && (
                  <FailureNotice
                    failure={conversation.failure}
                    onRetry={messages.length > 0 ? conversation.retry : undefined}
                    onSettings={props.onSettings}
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
            <PinnedPlan todos={todosOf(values.todos)} />
            <QueueList queue={conversation.queue} onRemove={(runId) => void conversation.unqueue(runId)} />
            <Composer
              threadId={threadId}
              busy={busy}
              canAttach={info?.canAttach === true}
              models={info?.models ?? null}
              commands={props.commands}
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

function useEnsureThread(client: Client, threadId: string | null, onThread: (id: string) => void) {
  const making = useRef<Promise<string> | null>(null);
  return useCallback((): Promise<string> => {
    if (threadId) return Promise.resolve(threadId);
    making.current ??= client.threads.create().then(({ thread_id }) => {
      onThread(thread_id);
      return thread_id;
    });
    return making.current;
  }, [client, threadId, onThread]);
}

/** What one might ask next, if the server offers it. */
function useSuggestions({ threadId, busy, messages, questions, failure, lastRun }: Conversation): string[] {
  const [found, setFound] = useState<string[]>([]);
  useEffect(() => {
    setFound([]);
    // Only after a run of this visit: opening an old conversation costs nothing.
    if (!threadId || busy || !lastRun || failure || questions.length > 0) return;
    const recent = messages
      .filter((message) => (message.type === "human" || message.type === "ai") && textOf(message))
      .slice(-4)
      .map((message) => ({ role: message.type === "human" ? "user" : "assistant", content: textOf(message) }));
    if (recent.length < 2) return;
    let alive = true;
    askSuggestions(threadId, recent, settings().model ?? undefined).then(
      (list) => alive && setFound(list.slice(0, 3)),
      () => undefined,
    );
    return () => {
      alive = false;
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [threadId, busy, lastRun]);
  return found;
}
