/** A sentence in which `this` is a name to be typed or found. Invariant: everything else stays text. */

export function Worded({ text }: { text: string }) {
  return text.split(/`([^`]+)`/).map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part));
}
