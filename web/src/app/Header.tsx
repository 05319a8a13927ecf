/** The bar above the conversation. Invariant: its height never changes. */
import { useText } from "../text/language";
import { IconButton } from "../ui/Button";
import { Menu } from "../ui/Menu";

interface Props {
  title: string | null;
  /** The agents there are to choose from, and which one answers here. */
  agents: { id: string; name: string; description: string | null }[];
  agent: string;
  onAgent(id: string): void;
  panel: "files" | "inspector" | null;
  onMenu(): void;
  onFiles(): void;
  onInspector(): void;
}

export function Header({ title, agents, agent, onAgent, panel, onMenu, onFiles, onInspector }: Props) {
  const t = useText();
  const current = agents.find((one) => one.id === agent);
  return (
    <header className="header">
      <IconButton className="header-menu" label={t.showSidebar} icon="menu" onClick={onMenu} />
      <h1 className="header-title" dir="auto">
        {title ?? t.newChat}
      </h1>
      {agents.length > 1 && (
        <Menu
          label={`${t.around.agents.picker}: ${current?.name ?? agent}`}
          className="button button-plain button-small header-agent"
          trigger={<span className="header-agent-name">{current?.name ?? agent}</span>}
          choice
          items={agents.map((one) => ({
            id: one.id,
            label: one.name,
            hint: one.description ?? undefined,
            checked: one.id === agent,
            onSelect: () => onAgent(one.id),
          }))}
        />
      )}
      <IconButton label={t.files.title} icon="files" aria-pressed={panel === "files"} onClick={onFiles} />
      <IconButton
        label={t.inspector.title}
        icon="timeline"
        aria-pressed={panel === "inspector"}
        onClick={onInspector}
      />
    </header>
  );
}
