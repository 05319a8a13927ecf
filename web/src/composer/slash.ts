/**
 * Slash commands: which ones fit what has been typed.
 *
 * Invariant: a slash counts only at the very start, so that paths and fractions are never taken for commands.
 */
import type { Command } from "../palette/command";

/** `null` unless a command is being typed. */
export function slashQuery(text: string): string | null {
  const match = /^\/([\p{L}\p{N}_-]*)$/u.exec(text);
  return match ? (match[1] ?? "") : null;
}

export function matchingCommands(commands: readonly Command[], query: string): Command[] {
  const wanted = query.toLowerCase();
  return commands.filter((command) => command.slash?.startsWith(wanted));
}

/** The command that takes the words behind its name, if the message begins with one. */
export function takenBy(commands: readonly Command[], text: string): { command: Command; words: string } | null {
  const match = /^\/([\p{L}\p{N}_-]+)(?:\s+([\s\S]*))?$/u.exec(text.trim());
  const command = commands.find((one) => one.take !== undefined && one.slash === match?.[1]?.toLowerCase());
  return command ? { command, words: match?.[2] ?? "" } : null;
}
