/**
 * The runs behind a conversation's turns, and rating them.
 *
 * Invariant: what was there is asked for once; after that each run of this visit is asked for once, when it ends.
 */
import type { Client } from "@langchain/langgraph-sdk";
import { useEffect, useMemo, useRef, useState } from "react";
import { newestRows, type Opinion, rate } from "../api/conversation";
import type { ChatMessage } from "./message";
import type { Row } from "./rows";
import { factsOf, isOver, NO_TURNS, type RawRun, type Turns, type TurnSources, turnsOf } from "./turns";

const NOTHING: TurnSources = { runs: new Map(), facts: new Map(), opinions: new Map() };

interface Watched {
  threadId: string | null;
  /** The thread was there when the page opened it. */
  opened: boolean;
  messages: readonly ChatMessage[];
  busy: boolean;
  /** The newest run of this visit. */
  ranNow: string | null;
}

export function useTurns(client: Client, watched: Watched, rows: readonly Row[]) {
  const { threadId, opened, messages, busy, ranNow } = watched;
  const [sources, setSources] = useState(NOTHING);
  const [openedWith] = useState(threadId);

  useEffect(() => {
    if (!opened || !openedWith) return;
    let alive = true;
    Promise.all([newestRows(openedWith), client.runs.list(openedWith, { limit: 100 })]).then(
      ([said, runs]) => {
        if (!alive) return;
        const opinions = said.flatMap((row) => (row.feedback ? [[row.run_id, row.feedback] as const] : []));
        setSources((now) => ({
          runs: merged(
            said.map((row) => [row.content.id ?? "", row.run_id] as const),
            now.runs,
          ),
          facts: merged(
            (runs as unknown as RawRun[]).map((run) => [run.run_id, factsOf(run)] as const),
            now.facts,
          ),
          opinions: merged(opinions, now.opinions),
        }));
      },
      // The conversation is there without it.
      () => undefined,
    );
    return () => {
      alive = false;
    };
  }, [client, opened, openedWith]);

  const newest = useRef(messages);
  newest.current = messages;
  useEffect(() => {
    if (busy || !ranNow || !threadId) return;
    let alive = true;
    const turn = newest.current.slice(newest.current.findLastIndex((message) => message.type === "human"));
    runAtItsEnd(client, threadId, ranNow, () => alive).then(
      (run) => {
        if (!alive) return;
        setSources((now) => ({
          ...now,
          // What an earlier run of a paused turn said stays its own.
          runs: merged(
            turn.map((message) => [message.id ?? "", ranNow] as const),
            now.runs,
          ),
          facts: new Map(now.facts).set(ranNow, factsOf(run)),
        }));
      },
      () => undefined,
    );
    return () => {
      alive = false;
    };
  }, [client, threadId, busy, ranNow]);

  const before = useRef(NO_TURNS);
  const turns: Turns = useMemo(() => {
    before.current = turnsOf(rows, sources, before.current);
    return before.current;
  }, [rows, sources]);

  const think = async (runId: string, opinion: Opinion | null): Promise<void> => {
    if (!threadId) return;
    const put = (value: Opinion | null | undefined) =>
      setSources((now) => {
        const opinions = new Map(now.opinions);
        if (value) opinions.set(runId, value);
        else opinions.delete(runId);
        return { ...now, opinions };
      });
    const old = sources.opinions.get(runId);
    put(opinion);
    await rate(threadId, runId, opinion).catch((error: unknown) => {
      put(old);
      throw error;
    });
  };
  return { turns, think, runs: sources.runs, facts: sources.facts };
}

const SOON_MS = 300;
const TRIES = 20;

/** A run that was stopped takes a moment to end. */
async function runAtItsEnd(client: Client, threadId: string, runId: string, wanted: () => boolean): Promise<RawRun> {
  for (let tries = 1; ; tries += 1) {
    const run = (await client.runs.get(threadId, runId)) as unknown as RawRun;
    if (isOver(run) || tries === TRIES || !wanted()) return run;
    await new Promise((resolve) => setTimeout(resolve, SOON_MS));
  }
}

/** What is known already wins: it is newer. */
function merged<T>(told: readonly (readonly [string, T])[], known: ReadonlyMap<string, T>): ReadonlyMap<string, T> {
  return new Map([...told, ...known]);
}
