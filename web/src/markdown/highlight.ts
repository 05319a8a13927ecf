/**
 * Colours for code, loaded when the first code is shown.
 *
 * Invariant: the colours come as elements, not as HTML; code without a known language stays plain.
 */
import { createElement, type ReactNode, useEffect, useState } from "react";

interface Node {
  type: string;
  value?: string;
  properties?: { className?: string[] };
  children?: Node[];
}

type Highlight = (code: string, language: string) => ReactNode | null;

let highlight: Highlight | null = null;
let loading: Promise<void> | null = null;

/** Longer code would block the page while it is read. */
const LIMIT = 60_000;

function load(): Promise<void> {
  loading ??= import("./languages").then(({ lowlight }) => {
    highlight = (code, language) => {
      if (!lowlight.registered(language)) return null;
      const tree = lowlight.highlight(language, code) as unknown as Node;
      return render(tree.children ?? []);
    };
  });
  return loading;
}

function render(nodes: Node[]): ReactNode[] {
  return nodes.map((node, index) =>
    node.type === "text"
      ? node.value
      : createElement(
          "span",
          { key: index, className: node.properties?.className?.join(" ") },
          render(node.children ?? []),
        ),
  );
}

export function useHighlighted(code: string, language: string): ReactNode | null {
  const wanted = language !== "" && code.length <= LIMIT;
  const [ready, setReady] = useState(highlight !== null);
  useEffect(() => {
    if (!wanted || ready) return;
    let alive = true;
    void load().then(() => alive && setReady(true));
    return () => {
      alive = false;
    };
  }, [wanted, ready]);
  return wanted && ready && highlight ? highlight(code, language.toLowerCase()) : null;
}
