/**
 * Where a message came into the thread, so that one can go back to before it.
 *
 * Invariant: reads backwards and only as far as needed.
 */
import type { Client } from "@langchain/langgraph-sdk";
import type { RawState } from "../inspector/steps";

export interface Place {
  /** The state in which the message is there for the first time. */
  first: string;
  /** The one before it; `null` when the thread began with the message. */
  before: string | null;
}

const PAGE = 20;

export async function findMessage(client: Client, threadId: string, messageId: string): Promise<Place | null> {
  let found: RawState | null = null;
  let before: string | undefined;
  for (;;) {
    const options = before ? { limit: PAGE, before: { configurable: { checkpoint_id: before } } } : { limit: PAGE };
    const states = (await client.threads.getHistory(threadId, options)) as unknown as RawState[];
    for (const state of states) {
      const holds = state.values?.messages?.some((message) => message.id === messageId);
      if (holds) found = state;
      else if (found) return place(found);
    }
    before = states.at(-1)?.checkpoint?.checkpoint_id ?? undefined;
    if (states.length < PAGE || !before) return found ? place(found) : null;
  }
}

function place(state: RawState): Place | null {
  const first = state.checkpoint?.checkpoint_id;
  return first ? { first, before: state.parent_checkpoint?.checkpoint_id ?? null } : null;
}
