/** What the model thought before it spoke. Invariant: folded unless a person opens it. */
import { useId, useState } from "react";
import { Markdown } from "../markdown/Markdown";
import { useText } from "../text/language";
import { Icon } from "../ui/Icon";

export function Reasoning({ text, active }: { text: string; active: boolean }) {
  const t = useText();
  const id = useId();
  const [open, setOpen] = useState(false);
  return (
    <section className="reasoning">
      <button
        type="button"
        className="reasoning-head"
        aria-expanded={open}
        aria-controls={id}
        onClick={() => setOpen(!open)}
      >
        <Icon name="spark" size={15} />
        {active ? t.message.reasoningNow : t.message.reasoning}
        <span className={open ? "tool-chevron tool-chevron-open" : "tool-chevron"}>
          <Icon name="chevron" size={13} />
        </span>
      </button>
      {open && (
        <div id={id} className="reasoning-text">
          <Markdown text={text} />
        </div>
      )}
    </section>
  );
}
