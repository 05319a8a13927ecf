/**
 * A formula between `$$` that is a paragraph of its own is meant to stand alone, also when it is on one line.
 *
 * Invariant: nothing but such paragraphs is changed.
 */

interface Node {
  type: string;
  value?: string;
  children?: Node[];
  data?: { hChildren?: { properties?: { className?: string[] } }[] } & Record<string, unknown>;
  position?: { start: { offset?: number } };
}

export function loneFormula() {
  return (tree: Node, file: { value: unknown }) => {
    const source = String(file.value);
    for (const paragraph of tree.children ?? []) {
      const [only, ...others] = paragraph.children ?? [];
      if (paragraph.type !== "paragraph" || others.length > 0 || only?.type !== "inlineMath") continue;
      const at = only.position?.start.offset ?? -1;
      if (at < 0 || !source.startsWith("$$", at)) continue;
      only.data = { ...only.data, hProperties: { className: ["language-math", "math-display"] } };
    }
  };
}
