/** One conversation in the list. Invariant: a link, so that it can be opened in a tab of its own. */
import { useState } from "react";
import { pathOf } from "../app/route";
import { useText } from "../text/language";
import { Icon } from "../ui/Icon";
import { Menu } from "../ui/Menu";
import type { ThreadSummary } from "./thread";

interface Props {
  thread: ThreadSummary;
  open: boolean;
  onOpen(): void;
  onChange(change: { title?: string; pinned?: boolean }): void;
  onExport(): void;
  onRemove(): void;
}

export function ThreadItem({ thread, open, onOpen, onChange, onExport, onRemove }: Props) {
  const t = useText();
  const [renaming, setRenaming] = useState(false);
  const title = thread.title ?? t.untitled;
  if (renaming) {
    const finish = (value: string) => {
      setRenaming(false);
      if (value.trim() && value.trim() !== thread.title) onChange({ title: value.trim() });
    };
    return (
      <li>
        <input
          className="field"
          aria-label={t.rename}
          defaultValue={title}
          autoFocus
          onBlur={(event) => finish(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") finish(event.currentTarget.value);
            if (event.key === "Escape") setRenaming(false);
          }}
        />
      </li>
    );
  }
  return (
    <li className={open ? "thread thread-open" : "thread"}>
      <a
        href={pathOf(thread.id)}
        aria-current={open ? "page" : undefined}
        title={title}
        onClick={(event) => {
          if (event.metaKey || event.ctrlKey || event.shiftKey) return;
          event.preventDefault();
          onOpen();
        }}
      >
        {thread.status === "busy" && <span className="spinner" />}
        {thread.asks && <Icon name="question" size={14} />}
        {thread.pinned && <Icon name="pin" size={14} />}
        <span className="thread-title" dir="auto">
          {title}
        </span>
      </a>
      <Menu
        label={`${t.more}: ${title}`}
        title={t.more}
        trigger={<Icon name="more" size={16} />}
        items={[
          {
            id: "pin",
            icon: "pin",
            label: thread.pinned ? t.unpin : t.pin,
            onSelect: () => onChange({ pinned: !thread.pinned }),
          },
          { id: "rename", icon: "edit", label: t.rename, onSelect: () => setRenaming(true) },
          { id: "export", icon: "download", label: t.exportThread, onSelect: onExport },
          { id: "remove", icon: "trash", label: t.remove, danger: true, onSelect: onRemove },
        ]}
      />
    </li>
  );
}
