/**
 * Line differences, with the unchanged parts folded.
 *
 * Invariant: a text that is too long to compare is shown as written, not compared until the page hangs.
 */
import { diffLines } from "diff";

export interface DiffLine {
  kind: "added" | "removed" | "same" | "gap";
  text: string;
}

const LIMIT = 200_000;
const AROUND = 3;

export function differenceOf(before: string, after: string): DiffLine[] {
  if (before === "") return linesOf(after).map((text) => ({ kind: "added", text }));
  if (before.length + after.length > LIMIT) {
    return [
      ...linesOf(before).map((text): DiffLine => ({ kind: "removed", text })),
      ...linesOf(after).map((text): DiffLine => ({ kind: "added", text })),
    ];
  }
  const lines = diffLines(before, after).flatMap((part): DiffLine[] => {
    const kind = part.added ? "added" : part.removed ? "removed" : "same";
    return linesOf(part.value).map((text) => ({ kind, text }));
  });
  return fold(lines);
}

/** A unified diff as the server gives it. */
export function parseUnified(diff: string): DiffLine[] {
  return linesOf(diff).flatMap((line): DiffLine[] => {
    if (/^(---|\+\+\+|diff |index |\\)/.test(line)) return [];
    if (line.startsWith("@@")) return [{ kind: "gap", text: line }];
    if (line.startsWith("+")) return [{ kind: "added", text: line.slice(1) }];
    if (line.startsWith("-")) return [{ kind: "removed", text: line.slice(1) }];
    return [{ kind: "same", text: line.slice(1) }];
  });
}

export function countChanges(lines: readonly DiffLine[]): { added: number; removed: number } {
  return {
    added: lines.filter((line) => line.kind === "added").length,
    removed: lines.filter((line) => line.kind === "removed").length,
  };
}

function fold(lines: DiffLine[]): DiffLine[] {
  const near = new Uint8Array(lines.length);
  lines.forEach((line, index) => {
    if (line.kind === "same") return;
    near.fill(1, Math.max(0, index - AROUND), Math.min(lines.length, index + AROUND + 1));
  });
  const folded: DiffLine[] = [];
  lines.forEach((line, index) => {
    if (near[index]) folded.push(line);
    else if (folded.at(-1)?.kind !== "gap") folded.push({ kind: "gap", text: "⋯" });
  });
  return folded;
}

function linesOf(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}
