/**
 * Another conversation that begins like this one.
 *
 * Invariant: the original is left as it is.
 */
import type { Client } from "@langchain/langgraph-sdk";
import { branchThread } from "../api/conversation";
import { type ChatMessage, textOf } from "./message";
import { provisionalTitle } from "../threads/thread";

/** Ends with the given message. */
export async function branchAt(
  client: Client,
  threadId: string,
  messageId: string,
  messages: readonly ChatMessage[],
): Promise<string> {
  const first = messages.find((message) => message.type === "human");
  const title = provisionalTitle(first ? textOf(first) : "");
  const { thread_id } = await branchThread(threadId, messageId, title);
  // It has all that the original had, but nobody pinned it.
  await client.threads.update(thread_id, { metadata: { pinned: false } });
  return thread_id;
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
