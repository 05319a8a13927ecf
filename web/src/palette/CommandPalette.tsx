/** Everything by keyboard: commands and conversations. Invariant: opens and closes without losing what had the focus. */
import { type KeyboardEvent, useState } from "react";
import type { ThreadSummary } from "../threads/thread";
import { useText } from "../text/language";
import { Dialog } from "../ui/Dialog";
import { type Command, readableKeys, search } from "./command";
import "./palette.css";

interface Props {
  commands: Command[];
  threads: ThreadSummary[];
  onOpen(id: string): void;
  onClose(): void;
}

export function CommandPalette({ commands, threads, onOpen, onClose }: Props) {
  const t = useText();
  const [query, setQuery] = useState("");
  const [chosen, setChosen] = useState(0);
  const found: Command[] = [
    ...search(commands, query).map((command) => ({ ...command, group: t.palette.actions })),
    ...search(
      threads.map((thread) => ({
        id: thread.id,
        title: thread.title ?? t.untitled,
        group: t.palette.threads,
        run: () => onOpen(thread.id),
      })),
      query,
    ).slice(0, 20),
  ];
  const run = (command: Command | undefined) => {
    if (!command) return;
    onClose();
    // After the dialog has given the focus back.
    setTimeout(() => command.run());
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setChosen(Math.min(chosen + 1, found.length - 1));
    else if (event.key === "ArrowUp") setChosen(Math.max(chosen - 1, 0));
    else if (event.key === "Enter") run(found[chosen]);
    else return;
    event.preventDefault();
    document.getElementById(`palette-${chosen}`)?.scrollIntoView({ block: "nearest" });
  };
  return (
    <Dialog title={t.palette.title} bare onClose={onClose}>
      <input
        className="palette-field"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={found.length > 0 ? `palette-${chosen}` : undefined}
        aria-label={t.palette.placeholder}
        placeholder={t.palette.placeholder}
        value={query}
        autoFocus
        onChange={(event) => {
          setQuery(event.target.value);
          setChosen(0);
        }}
        onKeyDown={onKeyDown}
      />
      <ul id="palette-list" className="palette-list scroll-thin" role="listbox" aria-label={t.palette.title}>
        {found.map((command, index) => (
          <li
            key={command.id}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === chosen}
            onPointerMove={() => setChosen(index)}
            onClick={() => run(command)}
          >
            <span className="palette-title" dir="auto">
              {command.title}
            </span>
            {command.keys ? <kbd>{readableKeys(command.keys)}</kbd> : <small>{command.group}</small>}
          </li>
        ))}
      </ul>
      {found.length === 0 && <p className="panel-note palette-empty">{t.palette.empty}</p>}
    </Dialog>
  );
}
