/**
 * The conversation as rows to show: one per message a person should see, with the results beside their calls.
 *
 * Invariant: a row whose message and results did not change is the same object as before, so that it is not drawn again.
 */
import { type ChatMessage, isHidden, reasoningOf, textOf, toolCallsOf, type ToolCall } from "./message";

export interface CallWithResult {
  call: ToolCall;
  result: ChatMessage | undefined;
}

export interface HumanRow {
  kind: "human";
  key: string;
  message: ChatMessage;
}

export interface AssistantRow {
  kind: "assistant";
  key: string;
  message: ChatMessage;
  calls: CallWithResult[];
  /** The last one of a turn: what can be done with the whole answer is offered here. */
  endsTurn: boolean;
}

export type Row = HumanRow | AssistantRow;

/** Answers to forms, by the request they answer. */
export type Answers = ReadonlyMap<string, string>;

export interface Transcript {
  rows: Row[];
  answers: Answers;
}

export function buildTranscript(messages: readonly ChatMessage[], previous?: Transcript): Transcript {
  const results = new Map<string, ChatMessage>();
  const answers = new Map<string, string>();
  for (const message of messages) {
    if (message.type === "tool" && message.tool_call_id) results.set(message.tool_call_id, message);
    const answer = answerOf(message);
    if (answer) answers.set(answer.requestId, answer.value);
  }
  const before = new Map(previous?.rows.map((row) => [row.key, row]));
  const rows: Row[] = [];
  messages.forEach((message, index) => {
    const row = rowOf(message, index, results);
    if (row) rows.push(row);
  });
  rows.forEach((row, index) => {
    if (row.kind === "assistant") row.endsTurn = rows[index + 1]?.kind !== "assistant";
  });
  return {
    rows: rows.map((row) => {
      const old = before.get(row.key);
      return old && sameRow(old, row) ? old : row;
    }),
    answers: previous && sameAnswers(previous.answers, answers) ? previous.answers : answers,
  };
}

function rowOf(message: ChatMessage, index: number, results: Map<string, ChatMessage>): Row | undefined {
  if (isHidden(message)) return undefined;
  const key = message.id ?? `#${index}`;
  if (message.type === "human") return { kind: "human", key, message };
  if (message.type !== "ai") return undefined;
  const calls = toolCallsOf(message).map((call) => ({ call, result: call.id ? results.get(call.id) : undefined }));
  if (calls.length === 0 && textOf(message) === "" && reasoningOf(message) === "") return undefined;
  return { kind: "assistant", key, message, calls, endsTurn: true };
}

function sameRow(a: Row, b: Row): boolean {
  if (a.message !== b.message) return false;
  if (a.kind !== "assistant" || b.kind !== "assistant") return a.kind === b.kind;
  return (
    a.endsTurn === b.endsTurn &&
    a.calls.length === b.calls.length &&
    a.calls.every((call, index) => call.result === b.calls[index]?.result)
  );
}

function sameAnswers(a: Answers, b: Answers): boolean {
  if (a.size !== b.size) return false;
  for (const [id, value] of b) if (a.get(id) !== value) return false;
  return true;
}

function answerOf(message: ChatMessage): { requestId: string; value: string } | undefined {
  const response = message.additional_kwargs?.human_input_response as
    { request_id?: unknown; value?: unknown } | undefined;
  if (typeof response?.request_id !== "string") return undefined;
  return { requestId: response.request_id, value: String(response.value ?? "") };
}
