/** Settings, by subject. Invariant: what the server does not offer is said, not shown empty. */
import { useState } from "react";
import type { ServerInfo } from "../app/server";
import { type Command, readableKeys } from "../palette/command";
import { useText } from "../text/language";
import { Dialog } from "../ui/Dialog";
import { AppearanceSettings } from "./AppearanceSettings";
import { ConnectionSettings } from "./ConnectionSettings";
import { ModelSettings } from "./ModelSettings";
import { SkillSettings } from "./SkillSettings";
import { changeSettings, useSettings } from "./store";
import "../ui/panel.css";
import "./settings.css";

const TABS = ["appearance", "models", "agents", "skills", "connection", "shortcuts"] as const;
export type SettingsTab = (typeof TABS)[number];

interface Props {
  tab: SettingsTab;
  info: ServerInfo | null;
  commands: Command[];
  onChanged(): void;
  onLookAgain(): Promise<void>;
  onClose(): void;
}

export function SettingsDialog({ tab, info, commands, onChanged, onLookAgain, onClose }: Props) {
  const t = useText();
  const [shown, setShown] = useState<SettingsTab>(tab);
  return (
    <Dialog title={t.settings.title} wide onClose={onClose}>
      <div className="tabs" role="tablist" aria-label={t.settings.title}>
        {TABS.map((one) => (
          <button
            key={one}
            id={`tab-${one}`}
            type="button"
            role="tab"
            aria-selected={one === shown}
            aria-controls="settings-panel"
            onClick={() => setShown(one)}
          >
            {t.settings[one]}
          </button>
        ))}
      </div>
      <div id="settings-panel" className="settings-panel" role="tabpanel" aria-labelledby={`tab-${shown}`}>
        {shown === "appearance" && <AppearanceSettings />}
        {shown === "models" && <ModelSettings info={info} onLookAgain={onLookAgain} />}
        {shown === "agents" && <AgentSettings info={info} />}
        {shown === "skills" && <SkillSettings />}
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

function AgentSettings({ info }: { info: ServerInfo | null }) {
  const { assistant } = useSettings();
  const t = useText();
  const assistants = info?.assistants ?? [];
  const current = assistant ?? assistants[0]?.id;
  return (
    <fieldset className="choices">
      <legend>{t.settings.agents}</legend>
      {assistants.map((one) => (
        <label key={one.id}>
          <input
            type="radio"
            name="assistant"
            checked={one.id === current}
            onChange={() => changeSettings({ assistant: one.id })}
          />
          <span>
            {one.name}
            {one.description && <small>{one.description}</small>}
          </span>
        </label>
      ))}
    </fieldset>
  );
}
