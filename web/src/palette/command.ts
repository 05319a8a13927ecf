/**
 * What can be done from the keyboard, once: the palette, the slash menu and the shortcuts all read it.
 *
 * Invariant: every command works without a mouse.
 */

export interface Command {
  id: string;
  title: string;
  group?: string;
  /** As `mod+k`; `mod` is Control, or Command on a Mac. */
  keys?: string;
  /** The word after the slash. */
  slash?: string;
  /** For a slash word that others follow: what is in the field when it is chosen. */
  insert?: string;
  /** What is done with those words; without it they are sent as they are. */
  take?(words: string): void;
  run(): void;
}

/** How well a title fits, or `null`. Letters in order; word starts and runs count more. */
export function rank(title: string, query: string): number | null {
  const text = title.toLowerCase();
  const wanted = query.toLowerCase().replace(/\s+/g, "");
  let score = 0;
  let from = 0;
  let previous = -2;
  for (const char of wanted) {
    const at = text.indexOf(char, from);
    if (at < 0) return null;
    score += at === previous + 1 ? 3 : at === 0 || /[\s/·-]/.test(text[at - 1] ?? "") ? 2 : 0;
    score -= (at - from) * 0.05;
    previous = at;
    from = at + char.length;
  }
  return score;
}

export function search<T extends { title: string }>(items: readonly T[], query: string): T[] {
  if (query.trim() === "") return [...items];
  return items
    .map((item) => ({ item, score: rank(item.title, query) }))
    .filter((one): one is { item: T; score: number } => one.score !== null)
    .sort((a, b) => b.score - a.score)
    .map((one) => one.item);
}

export interface KeyPress {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  shiftKey: boolean;
  altKey: boolean;
}

export const IS_MAC = typeof navigator !== "undefined" && /mac|iphone|ipad/i.test(navigator.platform);

export function pressed(keys: string, event: KeyPress, isMac = IS_MAC): boolean {
  const parts = keys.toLowerCase().split("+");
  const key = parts.at(-1);
  const mod = isMac ? event.metaKey : event.ctrlKey;
  const otherMod = isMac ? event.ctrlKey : event.metaKey;
  return (
    event.key.toLowerCase() === key &&
    parts.includes("mod") === mod &&
    !otherMod &&
    parts.includes("shift") === event.shiftKey &&
    parts.includes("alt") === event.altKey
  );
}

export function readableKeys(keys: string, isMac = IS_MAC): string {
  const names: Record<string, string> = isMac
    ? { mod: "⌘", shift: "⇧", alt: "⌥", escape: "esc", enter: "↵" }
    : { mod: "Ctrl", shift: "Shift", alt: "Alt", escape: "Esc", enter: "Enter" };
  return keys
    .split("+")
    .map((part) => names[part] ?? part.toUpperCase())
    .join(isMac ? "" : "+");
}
