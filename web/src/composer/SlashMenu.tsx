/** The commands that fit what is typed after a slash. Invariant: the field keeps the focus; arrows choose. */
import type { Command } from "../palette/command";
import { useText } from "../text/language";

interface Props {
  commands: Command[];
  chosen: number;
  onChoose(command: Command): void;
}

export function SlashMenu({ commands, chosen, onChoose }: Props) {
  const t = useText();
  return (
    <ul id="slash-menu" className="slash-menu scroll-thin" role="listbox" aria-label={t.palette.title}>
      {commands.map((command, index) => (
        <li
          key={command.id}
          id={`slash-${index}`}
          role="option"
          aria-selected={index === chosen}
          onPointerDown={(event) => {
            event.preventDefault();
            onChoose(command);
          }}
        >
          <code>/{command.slash}</code> <span>{command.title}</span>
        </li>
      ))}
    </ul>
  );
}
