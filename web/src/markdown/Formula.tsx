/** A formula. Invariant: its source is shown until it is drawn, and if it cannot be. */
import { type ReactNode, useEffect, useState } from "react";
import { mathmlElements } from "./mathml";

export function Formula({ tex, display }: { tex: string; display: boolean }) {
  const [drawn, setDrawn] = useState<ReactNode>(null);
  useEffect(() => {
    let alive = true;
    void draw(tex, display).then((result) => alive && setDrawn(result));
    return () => {
      alive = false;
    };
  }, [tex, display]);
  const source = <code>{tex}</code>;
  return display ? <span className="formula">{drawn ?? source}</span> : <span>{drawn ?? source}</span>;
}

async function draw(tex: string, display: boolean): Promise<ReactNode> {
  try {
    const { default: katex } = await import("katex");
    const options = { output: "mathml", displayMode: display, trust: false, maxExpand: 500, strict: "ignore" } as const;
    return mathmlElements(katex.renderToString(tex, { ...options, throwOnError: true }));
  } catch {
    return null;
  }
}
