/** The models there are and what each can do. Invariant: without one, it says how to connect one. */
import { isDemo, type ServerInfo } from "../app/server";
import { ConnectModel } from "../app/Welcome";
import { abilities } from "../composer/ModelPicker";
import { useText } from "../text/language";
import { changeSettings, useSettings } from "./store";

export function ModelSettings({ info, onLookAgain }: { info: ServerInfo | null; onLookAgain(): Promise<void> }) {
  const t = useText();
  const { model } = useSettings();
  const models = info?.models ?? null;
  if (models === null) {
    return (
      <>
        <p className="panel-note">{t.settings.noModels}</p>
        <ConnectModel onLookAgain={onLookAgain} />
      </>
    );
  }
  return (
    <>
      <fieldset className="choices">
        <legend>{t.settings.models}</legend>
        <label>
          <input type="radio" name="model" checked={model === null} onChange={() => changeSettings({ model: null })} />
          <span>{t.model.automatic}</span>
        </label>
        {models.map((one) => (
          <label key={one.name}>
            <input
              type="radio"
              name="model"
              checked={model === one.name}
              onChange={() => changeSettings({ model: one.name })}
            />
            <span>
              {one.display_name || one.name}
              <small>{[one.model, one.description, abilities(one, t)].filter(Boolean).join(" · ")}</small>
            </span>
          </label>
        ))}
      </fieldset>
      {isDemo(models) && <ConnectModel onLookAgain={onLookAgain} />}
    </>
  );
}
