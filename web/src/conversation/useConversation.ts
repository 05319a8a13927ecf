/**
 * One conversation with the agent, over LangGraph's own React hook.
 *
 * Invariant: everything that changes the conversation goes through here; components only call what this gives them.
 */
import type { Client } from "@langchain/langgraph-sdk";
import { useStream } from "@langchain/langgraph-sdk/react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { type Failure, readFailure } from "../api/failure";
import { type Prepared, prepareAgain, prepareEdited } from "../api/conversation";
import { serverAnswers } from "../app/server";
import { questionOf, type Question, type RawInterrupt, resumeValue } from "../questions/approval";
import { settings } from "../settings/store";
import { provisionalTitle } from "../threads/thread";
import { newId } from "../ui/clipboard";
import { type Activity, hear, hearTask, hearUpdate, QUIET } from "./activity";
import { keepIdentity } from "./identity";
import { type AttachedFile, type ChatMessage, filesOf, textOf } from "./message";
import type { QueuedMessage } from "./queue";
import { runContext } from "./runContext";
import { type ThreadValues, useThreadLoad } from "./threadState";
import { type Forks, goWay, useForks } from "./useForks";

export interface ConversationOptions {
  client: Client;
  assistantId: string;
  /** Until it is, nothing is sent: another agent might answer, or none. */
  assistantKnown: boolean;
  threadId: string | null;
  /** A first message made a thread. */
  onThread(threadId: string): void;
  /** Something changed that the list of threads shows. */
  onChanged(): void;
  /** The connection is gone for good; who hears it makes a new conversation when the server is back. */
  onOffline(): void;
  /** A message did not get through to the server. */
  onUnsent(text: string, files: AttachedFile[]): void;
  /** The thread is not what it was: it has to be read anew. */
  onReload(): void;
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
  /** The newest run there is. */
  lastRun: string | null;
  /** The newest run of this visit. */
  ranNow: string | null;
  /** The thread was there before this visit. */
  opened: boolean;
  /** The newest run of this visit was stopped here. */
  stopped: boolean;
  /** A message is on its way, and the server has not said that it took it. */
  sending: boolean;
  forks: Forks;
  metadata: Record<string, unknown>;
  send(text: string, files?: AttachedFile[]): void;
  answer(message: ChatMessage): void;
  resume(answers: unknown[]): void;
  stop(): void;
  /** `null` where trying again would not be the same again: the words are back in the field. */
  retry: (() => void) | null;
  /** Goes the way that ends at this step. */
  go(checkpointId: string): Promise<void>;
  regenerate(messageId: string): Promise<void>;
  editAndAsk(messageId: string, text: string): Promise<void>;
  unqueue(runId: string): Promise<void>;
}

const NO_MESSAGES: ChatMessage[] = [];
const NO_HISTORY: never[] = [];

/** The hook's types offer this only to agents typed by their TypeScript source; it works for all. */
const SUBAGENTS = { subagentToolNames: ["task"], filterSubagentMessages: true };

/** What goes to the server, as the hook takes it. */
interface Start {
  input: { messages: ChatMessage[] } | null;
  extra: Record<string, unknown>;
}

export function useConversation(options: ConversationOptions): Conversation {
  const { client, assistantId, assistantKnown, threadId, onThread, onChanged, onOffline, onUnsent, onReload } = options;
  const load = useThreadLoad(client, threadId);
  const loaded = load.state === "loaded" ? load.thread : null;
  const [activity, setActivity] = useState<Activity>(QUIET);
  const [streamFailure, setStreamFailure] = useState<Failure | null>(null);
  const [added, setAdded] = useState<QueuedMessage[]>([]);
  const [gone, setGone] = useState<ReadonlySet<string>>(new Set());
  const [ranNow, setRanNow] = useState<string | null>(null);
  const [ways, setWays] = useState(0);
  const [sending, setSending] = useState(false);
  const [held, setHeld] = useState<Start | null>(null);
  const [early, setEarly] = useState<ChatMessage[]>([]);
  const [stopped, setStopped] = useState(false);
  /** A run that was joined has been heard to its end. */
  const [heardOut, setHeardOut] = useState(false);
  const unsent = useRef<{ text: string; files: AttachedFile[] } | null>(null);
  const [undelivered, setUndelivered] = useState(false);
  const ran = ranNow !== null;
  const [opened] = useState(threadId !== null);

  const taken = (runId: string | undefined) => {
    unsent.current = null;
    setSending(false);
    setRanNow(runId ?? null);
  };

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
    onCreated: (run) => taken(run.run_id),
    onMetadataEvent: (data) => taken((data as { run_id?: string }).run_id),
    onCustomEvent: (event) => setActivity((now) => hear(now, event, Date.now())),
    onTaskEvent: (event) => setActivity((now) => hearTask(now, event)),
    onUpdateEvent: (event, { namespace }) => setActivity((now) => hearUpdate(now, event, namespace)),
    onError: (error) => {
      const failure = readFailure(error);
      setStreamFailure(failure);
      setSending(false);
      if (unsent.current !== null) {
        setUndelivered(true);
        onUnsent(unsent.current.text, unsent.current.files);
      }
      unsent.current = null;
      if (failure.kind === "offline") return onOffline();
      // Whatever was said, a server that does not answer is the reason.
      void serverAnswers().then((answers) => !answers && onOffline());
    },
    onFinish: () => {
      setActivity((now) => ({ ...now, waiting: null }));
      setHeardOut(true);
      onChanged();
    },
  });

  // A run that is about to be joined is at work already: what it asked before is not shown and taken away again.
  const joining = Boolean(loaded?.activeRun) && !ran && !heardOut && streamFailure === null;
  const busy = stream.isLoading || held !== null || joining;
  const streamRef = useRef(stream);
  streamRef.current = stream;
  const heard = useRef(ranNow);
  heard.current = ranNow;

  const queue = useMemo(
    () => [...(loaded?.queued ?? []), ...added].filter((one) => !gone.has(one.runId)),
    [loaded, added, gone],
  );
  const waiting = useMemo(
    () => [...queue, ...early.map((message) => ({ runId: message.id ?? "", text: textOf(message) }))],
    [queue, early],
  );

  useEffect(() => {
    if (load.state === "failed" && readFailure(load.error).kind === "offline") onOffline();
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [load.state, onOffline]);

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
    const run = loaded?.activeRun;
    if (run && !streamRef.current.isLoading && heard.current !== run) join(run);
  }, [loaded, join]);

  // What waited in line has its turn.
  const next = queue[0];
  useEffect(() => {
    if (busy || !next || load.state === "loading") return;
    setGone((now) => new Set(now).add(next.runId));
    setActivity(QUIET);
    setStopped(false);
    join(next.runId);
  }, [busy, next, join, load.state]);

  const known = useRef<ChatMessage[]>(NO_MESSAGES);
  const raw = (stream.messages as unknown as ChatMessage[] | undefined) ?? NO_MESSAGES;
  const messages = useMemo(() => {
    known.current = keepIdentity(known.current, raw);
    return known.current;
  }, [raw]);

  const start = (input: Start["input"], extra: Start["extra"] = {}) => {
    setStreamFailure(null);
    setUndelivered(false);
    setStopped(false);
    setActivity(QUIET);
    setSending(true);
    if (assistantKnown) submit({ input, extra });
    else setHeld({ input, extra });
  };

  const submit = ({ input, extra }: Start) => {
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

  useEffect(() => {
    if (!held || !assistantKnown) return;
    setHeld(null);
    submit(held);
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [held, assistantKnown]);

  const say = (message: ChatMessage) => {
    const optimisticValues = (previous: ThreadValues) => ({
      ...previous,
      messages: [...(previous.messages ?? []), message],
    });
    start({ messages: [message] }, { optimisticValues });
  };

  /** Another way from where a question was asked. */
  const ask = (prepared: Prepared, asked: string) => {
    const kept = messagesBefore(asked);
    setWays((now) => now + 1);
    start(prepared.input, {
      ...(prepared.checkpoint ? { checkpoint: prepared.checkpoint } : {}),
      metadata: prepared.metadata,
      optimisticValues: (previous: ThreadValues) => ({
        ...previous,
        messages: [...kept, ...prepared.input.messages],
      }),
    });
  };

  const enqueue = async (threadId: string, message: ChatMessage) => {
    const run = await client.runs.create(threadId, assistantId, {
      input: { messages: [message] },
      context: runContext(settings()),
      config: { recursion_limit: 1000 },
      multitaskStrategy: "enqueue",
      streamMode: ["values", "messages-tuple", "custom", "updates", "tasks"],
      streamSubgraphs: true,
      streamResumable: true,
    } as never);
    setAdded((now) => [...now, { runId: run.run_id, text: textOf(message) }]);
  };

  // It stands in line behind a run, which the server has to have taken.
  const [first] = early;
  useEffect(() => {
    if (!first) return;
    const giveBack = (thrown?: unknown) => {
      if (thrown) setStreamFailure(readFailure(thrown));
      onUnsent(textOf(first), filesOf(first));
    };
    if (busy && (sending || !threadId)) return;
    setEarly((now) => now.slice(1));
    if (threadId && !undelivered) enqueue(threadId, first).catch(giveBack);
    else giveBack();
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [first, busy, sending, threadId, undelivered]);

  const messagesBefore = (messageId: string): ChatMessage[] => {
    const index = messages.findIndex((message) => message.id === messageId);
    return index < 0 ? messages : messages.slice(0, index);
  };

  const forks = useForks(threadId, opened, ways, busy);
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
    queue: waiting,
    lastRun: ranNow ?? loaded?.newestRun ?? null,
    ranNow,
    opened,
    stopped,
    sending: busy && sending,
    forks,
    metadata: loaded?.metadata ?? {},
    send(text, files = []) {
      const message = humanMessage(text, files);
      if (busy) return setEarly((now) => [...now, message]);
      // A thread that an upload made has no title yet; one that `submit` makes gets it with the first message.
      if (threadId && messages.length === 0) {
        const metadata = { title: provisionalTitle(text || (files[0]?.filename ?? "")) };
        client.threads.update(threadId, { metadata }).then(onChanged, () => undefined);
      }
      unsent.current = { text, files };
      say(message);
    },
    answer: (message) => say({ ...message, id: newId() }),
    resume(answers) {
      if (questions[0]?.kind === "breakpoint") return start(null);
      start(null, { command: { resume: resumeValue(questions, answers) } });
    },
    stop() {
      setHeardOut(true);
      setStopped(true);
      if (!held) return void stream.stop();
      setHeld(null);
      setSending(false);
      if (unsent.current) onUnsent(unsent.current.text, unsent.current.files);
      unsent.current = null;
    },
    retry: load.state === "failed" ? load.again : messages.length > 0 && !undelivered ? () => start(null) : null,
    async go(checkpointId) {
      if (!threadId) return;
      await goWay(client, threadId, checkpointId);
      onReload();
    },
    async regenerate(messageId) {
      if (!threadId) return;
      const prepared = await prepareAgain(threadId, messageId);
      ask(prepared, prepared.input.messages[0]?.id ?? messageId);
    },
    async editAndAsk(messageId, text) {
      if (!threadId) return;
      ask(await prepareEdited(threadId, messageId, text), messageId);
    },
    async unqueue(runId) {
      setEarly((now) => now.filter((message) => message.id !== runId));
      if (!threadId || early.some((message) => message.id === runId)) return;
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
