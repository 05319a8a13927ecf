/**
 * Another conversation that begins like this one.
 *
 * Invariant: the original is left as it is.
 */
import type { Client } from "@langchain/langgraph-sdk";
import { branchThread } from "../api/native";
import { findMessage } from "./checkpoints";
import { type ChatMessage, textOf } from "./message";
import { provisionalTitle } from "../threads/thread";

/** Ends with the given message. */
export async function branchAt(
  client: Client,
  threadId: string,
  messageId: string,
  messages: readonly ChatMessage[],
): Promise<string | null> {
  const first = messages.find((message) => message.type === "human");
  const title = provisionalTitle(first ? textOf(first) : "");
  const upTo = messages.slice(0, messages.findIndex((message) => message.id === messageId) + 1);
  const ids = upTo.flatMap((message) => (message.id ? [message.id] : []));
  const native = await branchThread(threadId, messageId, ids, title).catch(() => null);
  if (native) return native.thread_id;
  const place = await findMessage(client, threadId, messageId);
  return place ? branchFromCheckpoint(client, threadId, place.first, title) : null;
}

/** A copy whose newest state is the given one. */
export async function branchFromCheckpoint(
  client: Client,
  threadId: string,
  checkpointId: string,
  title: string | null,
): Promise<string> {
  const copy = (await client.threads.copy(threadId)) as unknown as { thread_id: string };
  await client.threads.updateState(copy.thread_id, { values: null as never, checkpointId, asNode: "__end__" } as never);
  const metadata = { branched_from: threadId, pinned: false, ...(title ? { title } : {}) };
  await client.threads.update(copy.thread_id, { metadata });
  return copy.thread_id;
}
