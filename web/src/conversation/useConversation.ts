/**
 * One conversation with the agent, over LangGraph's own React hook.
 *
 * Invariant: everything that changes the conversation goes through here; components only call what this gives them.
 */
import type { Client } from "@langchain/langgraph-sdk";
import { useStream } from "@langchain/langgraph-sdk/react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { type Failure, readFailure } from "../api/failure";
import { serverAnswers } from "../app/server";
import { questionOf, type Question, type RawInterrupt, resumeValue } from "../questions/approval";
import { settings } from "../settings/store";
import { provisionalTitle } from "../threads/thread";
import { newId } from "../ui/clipboard";
import { type Activity, hear, QUIET, type SubagentStep } from "./activity";
import { findMessage } from "./checkpoints";
import { keepIdentity } from "./identity";
import { type AttachedFile, type ChatMessage, textOf, toolCallsOf } from "./message";
import type { QueuedMessage } from "./queue";
import { runContext } from "./runContext";
import { type ThreadValues, useThreadLoad } from "./threadState";

export interface ConversationOptions {
  client: Client;
  assistantId: string;
  threadId: string | null;
  /** A first message made a thread. */
  onThread(threadId: string): void;
  /** Something changed that the list of threads shows. */
  onChanged(): void;
  /** The connection is gone for good; who hears it makes a new conversation when the server is back. */
  onOffline(): void;
}

export interface Conversation {
  threadId: string | null;
  messages: ChatMessage[];
  values: ThreadValues;
  loading: boolean;
  busy: boolean;
  failure: Failure | null;
  questions: Question[];
  activity: Activity;
  queue: QueuedMessage[];
  lastRun: string | null;
  metadata: Record<string, unknown>;
  subagentSteps(callId: string): SubagentStep[];
  send(text: string, files?: AttachedFile[]): void;
  answer(message: ChatMessage): void;
  resume(answers: unknown[]): void;
  stop(): void;
  retry(): void;
  regenerate(messageId: string): Promise<void>;
  editAndAsk(messageId: string, text: string): Promise<void>;
  unqueue(runId: string): Promise<void>;
}

const NO_MESSAGES: ChatMessage[] = [];
const NO_HISTORY: never[] = [];

/** The hook's types offer this only to agents typed by their TypeScript source; it works for all. */
const SUBAGENTS = { subagentToolNames: ["task"], filterSubagentMessages: true };

interface SubagentReader {
  getSubagent(callId: string): { messages?: unknown } | undefined;
}

export function useConversation(options: ConversationOptions): Conversation {
  const { client, assistantId, threadId, onThread, onChanged, onOffline } = options;
  const load = useThreadLoad(client, threadId);
  const loaded = load.state === "loaded" ? load.thread : null;
  const [activity, setActivity] = useState<Activity>(QUIET);
  const [streamFailure, setStreamFailure] = useState<Failure | null>(null);
  const [added, setAdded] = useState<QueuedMessage[]>([]);
  const [gone, setGone] = useState<ReadonlySet<string>>(new Set());
  const [lastRun, setLastRun] = useState<string | null>(null);
  const ran = lastRun !== null;

  const stream = useStream<ThreadValues>({
    client,
    assistantId,
    threadId,
    onThreadId: onThread,
    // The thread is loaded above, in one request; the hook's own way compares every message with every state.
    thread: { data: NO_HISTORY, isLoading: load.state === "loading", error: undefined, mutate: async () => [] },
    initialValues: loaded?.values ?? null,
    reconnectOnMount: true,
    ...SUBAGENTS,
    onCreated: (run) => setLastRun(run.run_id),
    onMetadataEvent: (data) => setLastRun((data as { run_id?: string }).run_id ?? null),
    onCustomEvent: (event) => setActivity((now) => hear(now, event, Date.now())),
    onError: (error) => {
      const failure = readFailure(error);
      setStreamFailure(failure);
      if (failure.kind === "offline") return onOffline();
      // Whatever was said, a server that does not answer is the reason.
      void serverAnswers().then((answers) => !answers && onOffline());
    },
    onFinish: () => {
      setActivity((now) => ({ ...now, waiting: null }));
      onChanged();
    },
  });

  const busy = stream.isLoading;
  const streamRef = useRef(stream);
  streamRef.current = stream;

  const queue = useMemo(
    () => [...(loaded?.queued ?? []), ...added].filter((one) => !gone.has(one.runId)),
    [loaded, added, gone],
  );

  useEffect(() => {
    if (load.state === "failed" && readFailure(load.error).kind === "offline") onOffline();
  }, [load, onOffline]);

  const join = useCallback(
    (runId: string) => {
      if (!threadId) return;
      // The hook stops and rejoins the run it finds here.
      sessionStorage.setItem(`lg:stream:${threadId}`, runId);
      setStreamFailure(null);
      void streamRef.current.joinStream(runId);
    },
    [threadId],
  );

  // A run that another page started, or that went on while this one was away.
  useEffect(() => {
    if (loaded?.activeRun && !streamRef.current.isLoading) join(loaded.activeRun);
  }, [loaded, join]);

  // What waited in line has its turn.
  const next = queue[0];
  useEffect(() => {
    if (busy || !next || load.state === "loading") return;
    setGone((now) => new Set(now).add(next.runId));
    setActivity(QUIET);
    join(next.runId);
  }, [busy, next, join, load.state]);

  const known = useRef<ChatMessage[]>(NO_MESSAGES);
  const raw = (stream.messages as unknown as ChatMessage[] | undefined) ?? NO_MESSAGES;
  const messages = useMemo(() => {
    known.current = keepIdentity(known.current, raw);
    return known.current;
  }, [raw]);

  const start = (input: { messages: ChatMessage[] } | null, extra: Record<string, unknown> = {}) => {
    setStreamFailure(null);
    setActivity(QUIET);
    const text = input?.messages.at(-1);
    void stream.submit(
      input as never,
      {
        context: runContext(settings()),
        config: { recursion_limit: 1000 },
        streamSubgraphs: true,
        streamResumable: true,
        onDisconnect: "continue",
        ...(threadId || !text ? {} : { metadata: { title: provisionalTitle(textOf(text)) } }),
        ...extra,
      } as never,
    );
  };

  const say = (message: ChatMessage, from?: { checkpoint: string; kept: ChatMessage[] }) => {
    const optimisticValues = (previous: ThreadValues) => ({
      ...previous,
      messages: [...(from?.kept ?? previous.messages ?? []), message],
    });
    const checkpoint = from ? { checkpoint: { checkpoint_id: from.checkpoint, checkpoint_ns: "" } } : {};
    start({ messages: [message] }, { optimisticValues, ...checkpoint });
  };

  const enqueue = async (message: ChatMessage) => {
    if (!threadId) return;
    const run = await client.runs.create(threadId, assistantId, {
      input: { messages: [message] },
      context: runContext(settings()),
      config: { recursion_limit: 1000 },
      multitaskStrategy: "enqueue",
      streamMode: ["values", "messages-tuple", "custom", "updates"],
      streamSubgraphs: true,
      streamResumable: true,
    } as never);
    setAdded((now) => [...now, { runId: run.run_id, text: textOf(message) }]);
  };

  const messagesBefore = (messageId: string): ChatMessage[] => {
    const index = messages.findIndex((message) => message.id === messageId);
    return index < 0 ? messages : messages.slice(0, index);
  };

  const interrupts = ran ? (stream.interrupts as RawInterrupt[]) : (loaded?.interrupts ?? []);
  const questions = busy ? [] : interrupts.map(questionOf);
  const loadError = load.state === "failed" ? load.error : loaded?.error;
  const failure = streamFailure ?? (loadError && !ran ? readFailure(loadError) : null);

  return {
    threadId,
    messages,
    values: stream.values ?? {},
    loading: load.state === "loading" && messages.length === 0,
    busy,
    failure: busy ? null : failure,
    questions,
    activity,
    queue,
    lastRun,
    metadata: loaded?.metadata ?? {},
    subagentSteps: (callId) => stepsOf((stream as unknown as SubagentReader).getSubagent(callId)),
    send(text, files = []) {
      const message = humanMessage(text, files);
      if (busy) return void enqueue(message).catch((thrown: unknown) => setStreamFailure(readFailure(thrown)));
      // A thread that an upload made has no title yet; one that `submit` makes gets it with the first message.
      if (threadId && messages.length === 0) {
        const metadata = { title: provisionalTitle(text) };
        client.threads.update(threadId, { metadata }).then(onChanged, () => undefined);
      }
      say(message);
    },
    answer: (message) => say({ ...message, id: newId() }),
    resume(answers) {
      if (questions[0]?.kind === "breakpoint") return start(null);
      start(null, { command: { resume: resumeValue(questions, answers) } });
    },
    stop: () => void stream.stop(),
    retry: () => start(null),
    async regenerate(messageId) {
      if (!threadId) return;
      const place = await findMessage(client, threadId, messageId);
      if (!place?.before) return;
      const kept = messagesBefore(messageId);
      start(null, {
        checkpoint: { checkpoint_id: place.before, checkpoint_ns: "" },
        optimisticValues: (previous: ThreadValues) => ({ ...previous, messages: kept }),
      });
    },
    async editAndAsk(messageId, text) {
      if (!threadId) return;
      const place = await findMessage(client, threadId, messageId);
      if (!place?.before) return;
      say(humanMessage(text, []), { checkpoint: place.before, kept: messagesBefore(messageId) });
    },
    async unqueue(runId) {
      if (!threadId) return;
      setGone((now) => new Set(now).add(runId));
      await client.runs.cancel(threadId, runId).catch(() => undefined);
    },
  };
}

export function humanMessage(text: string, files: AttachedFile[]): ChatMessage {
  const attached = files.map((file) => ({ ...file, status: "uploaded" }));
  return {
    id: newId(),
    type: "human",
    content: text,
    ...(files.length > 0 ? { additional_kwargs: { files: attached } } : {}),
  };
}

function stepsOf(subagent: { messages?: unknown } | undefined): SubagentStep[] {
  const messages = (subagent?.messages ?? []) as ChatMessage[];
  return messages
    .filter((message) => message.type === "ai")
    .map((message) => ({ text: textOf(message), tools: toolCallsOf(message).map((call) => call.name) }));
}
