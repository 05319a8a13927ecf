/** What can be done with a message. Invariant: reachable by keyboard, quiet until looked for. */
import type { ReactNode } from "react";
import { useState } from "react";
import { useText } from "../text/language";
import { IconButton } from "../ui/Button";
import { copyText } from "../ui/clipboard";

export function MessageActions({ text, children }: { text: string; children?: ReactNode }) {
  const t = useText();
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await copyText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <div className="message-actions">
      {text !== "" && (
        <IconButton small label={copied ? t.copied : t.copy} icon={copied ? "check" : "copy"} onClick={copy} />
      )}
      {children}
    </div>
  );
}
