/**
 * The steps of a subagent: as they were heard, or from the run's log when its card is opened later.
 *
 * Invariant: what was read of a call that is over is read once; without it the card has its report all the same.
 */
import { useEffect, useState } from "react";
import { subagentSteps } from "../api/conversation";
import type { SubagentStep } from "../conversation/activity";
import { useOpenFile } from "../files/openFile";

const NO_STEPS: readonly SubagentStep[] = [];
/** Cards come and go as one scrolls. */
const KEPT = 100;
const read = new Map<string, readonly SubagentStep[]>();

/** `runId` only once the call is over: until then its steps are heard. */
export function useSubagentSteps(
  heard: readonly SubagentStep[] | undefined,
  runId: string | undefined,
  callId: string | undefined,
): readonly SubagentStep[] {
  const { threadId } = useOpenFile();
  const key = threadId && runId && callId ? `${threadId}/${runId}/${callId}` : undefined;
  const [, setRead] = useState(0);
  const wanted = heard === undefined && key !== undefined && !read.has(key);
  useEffect(() => {
    if (!wanted || !threadId || !runId || !callId) return;
    let alive = true;
    subagentSteps(threadId, runId, callId).then(
      (steps) => {
        keep(key, steps);
        if (alive) setRead((now) => now + 1);
      },
      // A stream that was forgotten, or a server without the route.
      () => undefined,
    );
    return () => {
      alive = false;
    };
  }, [wanted, key, threadId, runId, callId]);
  return heard ?? read.get(key ?? "") ?? NO_STEPS;
}

function keep(key: string, steps: readonly SubagentStep[]): void {
  const oldest = read.keys().next();
  if (read.size >= KEPT && !oldest.done) read.delete(oldest.value);
  read.set(key, steps);
}
