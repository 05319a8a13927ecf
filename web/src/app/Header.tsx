/** The bar above the conversation. Invariant: its height never changes. */
import { useText } from "../text/language";
import { IconButton } from "../ui/Button";

interface Props {
  title: string | null;
  panel: "files" | "inspector" | null;
  onMenu(): void;
  onFiles(): void;
  onInspector(): void;
}

export function Header({ title, panel, onMenu, onFiles, onInspector }: Props) {
  const t = useText();
  return (
    <header className="header">
      <IconButton className="header-menu" label={t.showSidebar} icon="menu" onClick={onMenu} />
      <h1 className="header-title" dir="auto">
        {title ?? t.newChat}
      </h1>
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
