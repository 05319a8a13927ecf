/** How fast a replay goes. Invariant: what took long takes a moment, never as long as it took. */
import type { Step } from "./steps";

const SHORTEST_MS = 400;
const LONGEST_MS = 2500;

export function pauseBefore(step: Step): number {
  return Math.min(Math.max(step.took ?? 0, SHORTEST_MS), LONGEST_MS);
}
