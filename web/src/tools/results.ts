/**
 * Results of tools, read as what they are.
 *
 * Invariant: a result in no known shape is given back as text.
 */
import { type ChatMessage, textOf } from "../conversation/message";

export interface SearchHit {
  title: string;
  url: string;
  snippet: string;
}

/** Web searches answer with an array, or with an object that holds one. */
export function searchHits(result: ChatMessage | undefined): SearchHit[] | null {
  if (!result) return null;
  let parsed: unknown;
  try {
    parsed = JSON.parse(textOf(result));
  } catch {
    return null;
  }
  const rows = Array.isArray(parsed) ? parsed : isObject(parsed) ? parsed.results : null;
  if (!Array.isArray(rows)) return null;
  return rows.filter(isObject).map((row) => ({
    title: String(row.title ?? row.url ?? ""),
    url: String(row.url ?? row.image_url ?? row.link ?? ""),
    snippet: String(row.snippet ?? row.content ?? row.description ?? ""),
  }));
}

export interface CommandResult {
  output: string;
  errorOutput: string;
  exitCode: number | null;
}

/** Standard output, then a `Std Error:` block, then `Exit Code: N` if that is not 0. */
export function commandResult(text: string): CommandResult {
  let rest = text;
  let exitCode: number | null = null;
  const exit = /\n?Exit Code: (-?\d+)\s*$/.exec(rest);
  if (exit) {
    exitCode = Number(exit[1]);
    rest = rest.slice(0, exit.index);
  }
  const error = /(?:^|\n)Std Error:\n?/.exec(rest);
  if (!error) return { output: rest, errorOutput: "", exitCode };
  return { output: rest.slice(0, error.index), errorOutput: rest.slice(error.index + error[0].length), exitCode };
}

export interface FoundLine {
  path: string;
  number: number | null;
  text: string;
}

/** `Found …`, then a path a line, with its line number and text where something in the file was looked for. */
export function foundLines(text: string): { about: string; lines: FoundLine[] } | null {
  const rows = text.trim().split("\n");
  const about = /^(Found|No) /.test(rows[0] ?? "") ? (rows.shift() ?? "") : "";
  const lines: FoundLine[] = [];
  for (const row of rows) {
    const [, path, number, found = ""] = /^(?:\d+\. )?(\/[^:]+)(?::(\d+):(?: (.*))?)?$/.exec(row) ?? [];
    if (!path) return null;
    lines.push({ path, number: number ? Number(number) : null, text: found });
  }
  return { about, lines };
}

/** How a call ended, as a person would say: a command that ended with a code did not do what it should. */
export function hasFailed(kind: string, result: ChatMessage | undefined): boolean {
  if (!result) return false;
  return result.status === "error" || (kind === "command" && commandResult(textOf(result)).exitCode !== null);
}

export interface Todo {
  content: string;
  status: "pending" | "in_progress" | "completed";
}

export function todosOf(value: unknown): Todo[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isObject).flatMap((todo): Todo[] => {
    if (typeof todo.content !== "string") return [];
    const status = todo.status === "completed" || todo.status === "in_progress" ? todo.status : "pending";
    return [{ content: todo.content, status }];
  });
}

/** Bytes that are no text would fill the screen with noise. */
export function looksBinary(text: string): boolean {
  const sample = text.slice(0, 2000);
  let odd = 0;
  for (const char of sample) {
    const code = char.codePointAt(0) ?? 0;
    if (code === 0xfffd || (code < 32 && code !== 9 && code !== 10 && code !== 13 && code !== 27)) odd += 1;
  }
  return sample.length > 0 && odd / sample.length > 0.1;
}

/** The colours of terminals are not shown; their codes must not be either. */
export function withoutEscapes(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replace(/\u001b\[[0-9;?]*[ -/]*[@-~]|\u001b\][^\u0007]*(?:\u0007|\u001b\\)/g, "");
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
