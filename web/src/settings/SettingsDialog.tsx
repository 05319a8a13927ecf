/** Settings, by subject. Invariant: what the server does not offer is said, not shown empty. */
import { type KeyboardEvent, useState } from "react";
import type { ServerInfo } from "../app/server";
import { type Command, readableKeys } from "../palette/command";
import { useText } from "../text/language";
import { Dialog } from "../ui/Dialog";
import { UsageSettings } from "../usage/UsageSettings";
import { AgentSettings } from "./AgentSettings";
import { AppearanceSettings } from "./AppearanceSettings";
import { ConnectionSettings } from "./ConnectionSettings";
import { ModelSettings } from "./ModelSettings";
import { SkillSettings } from "./SkillSettings";
import { type SettingsTab, TABS } from "./tabs";
import "../ui/panel.css";
import "./settings.css";

interface Props {
  tab: SettingsTab;
  info: ServerInfo | null;
  commands: Command[];
  onChanged(): void;
  onLookAgain(): Promise<void>;
  onOpen(threadId: string): void;
  onClose(): void;
}

export function SettingsDialog({ tab, info, commands, onChanged, onLookAgain, onOpen, onClose }: Props) {
  const t = useText();
  const [shown, setShown] = useState<SettingsTab>(tab);
  // As in every row of tabs: arrows go through them, Tab goes on to what one shows.
  const move = (event: KeyboardEvent) => {
    const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!way) return;
    const next = TABS[(TABS.indexOf(shown) + way + TABS.length) % TABS.length] ?? shown;
    setShown(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <Dialog title={t.settings.title} wide onClose={onClose}>
      <div className="tabs" role="tablist" aria-label={t.settings.title} onKeyDown={move}>
        {TABS.map((one) => (
          <button
            key={one}
            id={`tab-${one}`}
            type="button"
            role="tab"
            aria-selected={one === shown}
            aria-controls="settings-panel"
            tabIndex={one === shown ? 0 : -1}
            onClick={() => setShown(one)}
          >
            {one === "usage" ? t.around.usage.title : t.settings[one]}
          </button>
        ))}
      </div>
      <div id="settings-panel" className="settings-panel" role="tabpanel" aria-labelledby={`tab-${shown}`}>
        {shown === "appearance" && <AppearanceSettings />}
        {shown === "models" && <ModelSettings info={info} onLookAgain={onLookAgain} />}
        {shown === "agents" && <AgentSettings info={info} onLookAgain={onLookAgain} />}
        {shown === "skills" && <SkillSettings />}
        {shown === "usage" && <UsageSettings onOpen={onOpen} />}
        {shown === "connection" && <ConnectionSettings onChanged={onChanged} />}
        {shown === "shortcuts" && (
          <dl className="shortcuts">
            {commands
              .filter((command) => command.keys)
              .map((command) => (
                <div key={command.id}>
                  <dt>{command.title}</dt>
                  <dd>
                    <kbd>{readableKeys(command.keys ?? "")}</kbd>
                  </dd>
                </div>
              ))}
          </dl>
        )}
      </div>
    </Dialog>
  );
}
