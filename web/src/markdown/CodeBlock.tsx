/** Code with its colours, a copy button, and diagrams drawn. Invariant: readable before the colours have arrived. */
import { useState } from "react";
import { useText } from "../text/language";
import { IconButton } from "../ui/Button";
import { copyText } from "../ui/clipboard";
import { Diagram } from "./Diagram";
import { useHighlighted } from "./highlight";

export function CodeBlock({ code, language }: { code: string; language: string }) {
  if (language === "mermaid") return <Diagram source={code} />;
  return <PlainCode code={code} language={language} />;
}

export function PlainCode({ code, language }: { code: string; language: string }) {
  const t = useText();
  const [copied, setCopied] = useState(false);
  const coloured = useHighlighted(code, language);
  const copy = async () => {
    await copyText(code);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <figure className="code-block">
      <figcaption>
        <span>{language}</span>
        <IconButton small label={copied ? t.copied : t.copy} icon={copied ? "check" : "copy"} onClick={copy} />
      </figcaption>
      <pre className="scroll-thin" tabIndex={0} dir="ltr">
        <code>{coloured ?? code}</code>
      </pre>
    </figure>
  );
}
