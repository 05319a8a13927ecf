/** A difference, line by line. Invariant: the sign says what the colour says. */
import { useState } from "react";
import { useText } from "../text/language";
import { Button } from "../ui/Button";
import type { DiffLine } from "./difference";

const SHOWN = 60;
const SIGNS = { added: "+", removed: "−", same: " ", gap: "" } as const;

export function DiffView({ lines }: { lines: readonly DiffLine[] }) {
  const t = useText();
  const [all, setAll] = useState(false);
  const shown = all ? lines : lines.slice(0, SHOWN);
  return (
    <>
      <pre className="diff scroll-thin" tabIndex={0} dir="ltr">
        {shown.map((line, index) => (
          <div key={index} className={`diff-line diff-${line.kind}`}>
            <span className="diff-sign">{SIGNS[line.kind]}</span>
            <span>{line.text || " "}</span>
          </div>
        ))}
      </pre>
      {lines.length > SHOWN && (
        <Button small look="plain" onClick={() => setAll(!all)}>
          {all ? t.tool.showLess : `${t.tool.showAll} (${lines.length})`}
        </Button>
      )}
    </>
  );
}
