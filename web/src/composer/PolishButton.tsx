/** Better words for what is written. Invariant: one press puts the old words back. */
import { useState } from "react";
import { polish } from "../api/conversation";
import { readFailure } from "../api/failure";
import { useText } from "../text/language";
import { IconButton } from "../ui/Button";
import { say } from "../ui/toast";

export function PolishButton({ text, onChange }: { text: string; onChange(text: string): void }) {
  const t = useText();
  const [busy, setBusy] = useState(false);
  const [made, setMade] = useState<{ from: string; to: string } | null>(null);
  const undo = made !== null && made.to === text;
  const press = async () => {
    if (undo) {
      setMade(null);
      return onChange(made.from);
    }
    setBusy(true);
    try {
      const better = await polish(text);
      if (better === text.trim()) return say(t.polish.same);
      setMade({ from: text, to: better });
      onChange(better);
    } catch (error) {
      say(`${t.polish.failed} ${readFailure(error).detail.slice(0, 120)}`);
    } finally {
      setBusy(false);
    }
  };
  return (
    <IconButton
      label={undo ? t.polish.undo : t.polish.label}
      icon={undo ? "undo" : "spark"}
      aria-busy={busy}
      disabled={busy || text.trim() === ""}
      onClick={() => void press()}
    />
  );
}
