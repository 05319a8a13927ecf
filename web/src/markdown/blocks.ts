/**
 * Cuts markdown into pieces that can be drawn on their own, so that a growing answer redraws only its last piece.
 *
 * Invariant: the pieces joined are the text, and no piece changes what another one means.
 */

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
/** Starts something that cannot be a continuation of what stands above the blank line. */
const FRESH = /^(#{1,6} |[^\s\-*+>|\d[\]$<(#=_~`:]|`{3,}|~{3,})/;
/** Names used elsewhere in the text: references and footnotes belong together. */
const DEFINITION = /^ {0,3}\[[^\]]+\]:/m;

export function splitBlocks(text: string): string[] {
  if (text.length < 400 || DEFINITION.test(text)) return [text];
  const pieces: string[] = [];
  let start = 0;
  let offset = 0;
  let fence: string | null = null;
  let inFormula = false;
  let afterBlank = false;
  for (const line of text.split(/(?<=\n)/)) {
    const opens = FENCE.exec(line)?.[1];
    if (fence === null && !inFormula && afterBlank && offset > start && FRESH.test(line)) {
      pieces.push(text.slice(start, offset));
      start = offset;
    }
    if (opens && !inFormula) {
      if (fence === null) fence = opens;
      else if (opens[0] === fence[0] && opens.length >= fence.length && line.trim() === opens) fence = null;
    } else if (fence === null && line.trim().startsWith("$$") && !/^\$\$.+\$\$$/.test(line.trim())) {
      inFormula = !inFormula;
    }
    afterBlank = line.trim() === "";
    offset += line.length;
  }
  pieces.push(text.slice(start));
  return pieces;
}
