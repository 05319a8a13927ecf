/** What a thread is to reach, and what is asked behind `/goal`. Invariant: what is no goal is none. */
import type { Goal } from "../api/conversation";

/** `null` for anything that is no goal. */
export function goalOf(value: unknown): Goal | null {
  if (typeof value !== "object" || value === null) return null;
  const goal = value as Partial<Goal>;
  return typeof goal.objective === "string" && goal.objective !== "" ? (goal as Goal) : null;
}

export type GoalOrder = { kind: "show" } | { kind: "clear" } | { kind: "set"; objective: string };

/** The words behind `/goal`. */
export function goalOrder(words: string): GoalOrder {
  const objective = words.trim();
  if (objective === "") return { kind: "show" };
  return /^(clear|reset|off)$/i.test(objective) ? { kind: "clear" } : { kind: "set", objective };
}
