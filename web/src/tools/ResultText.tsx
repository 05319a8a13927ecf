/** The text of a result. Invariant: long text is cut until asked for, and bytes that are no text are not shown. */
import { useState } from "react";
import { useText } from "../text/language";
import { Button } from "../ui/Button";
import { looksBinary, withoutEscapes } from "./results";

const SHOWN = 4000;

export function ResultText({ text, bad, keepEnd }: { text: string; bad?: boolean; keepEnd?: boolean }) {
  const t = useText();
  const [all, setAll] = useState(false);
  if (looksBinary(text)) return <p className="tool-note">{t.tool.binary}</p>;
  const clean = withoutEscapes(text);
  const long = clean.length > SHOWN;
  const shown = !long || all ? clean : keepEnd ? clean.slice(-SHOWN) : clean.slice(0, SHOWN);
  return (
    <>
      <pre className={bad ? "tool-text tool-text-bad scroll-thin" : "tool-text scroll-thin"} tabIndex={0} dir="auto">
        {shown}
        {long && !all && !keepEnd && "…"}
      </pre>
      {long && (
        <Button small look="plain" onClick={() => setAll(!all)}>
          {all ? t.tool.showLess : t.tool.showAll}
        </Button>
      )}
    </>
  );
}
