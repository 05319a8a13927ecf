/** The models there are, what each can do, and connecting another. Invariant: a key is never shown. */
import { useCallback, useEffect, useState } from "react";
import { type Connection, listConnections, removeConnection } from "../api/around";
import { readFailure } from "../api/failure";
import type { ModelInfo } from "../api/native";
import { isDemo, type ServerInfo } from "../app/server";
import { abilities } from "../composer/ModelPicker";
import { ConnectModel } from "../connect/ConnectModel";
import { providerName } from "../connect/provider";
import type { Text } from "../text/en";
import { useText } from "../text/language";
import { Button } from "../ui/Button";
import { say } from "../ui/toast";
import { readableCost } from "../usage/figures";
import { Confirm } from "./Confirm";
import { changeSettings, useSettings } from "./store";

/** What the server tells beyond what the composer's picker shows. */
interface ModelDetails extends ModelInfo {
  provider?: string;
  reason?: string;
  is_default?: boolean;
  context_window?: number | null;
  pricing?: { currency?: string | null; input_per_million?: number; output_per_million?: number } | null;
}

export function ModelSettings({ info, onLookAgain }: { info: ServerInfo | null; onLookAgain(): Promise<void> }) {
  const t = useText();
  const { model } = useSettings();
  const [connections, setConnections] = useState<Connection[] | null>(null);
  const [leaving, setLeaving] = useState<Connection | null>(null);
  const models = (info?.models ?? null) as ModelDetails[] | null;
  const load = useCallback(async () => {
    const answer = await listConnections().catch(() => null);
    setConnections(answer?.connections ?? null);
  }, []);
  useEffect(() => void load(), [load]);
  const disconnect = async (connection: Connection) => {
    setLeaving(null);
    try {
      await removeConnection(connection.name);
      if (model === connection.name) changeSettings({ model: null });
      await Promise.all([load(), onLookAgain()]);
    } catch (error) {
      say(readFailure(error).detail);
    }
  };
  const connected = async () => {
    await Promise.all([load(), onLookAgain()]);
  };
  return (
    <>
      {models === null && <p className="panel-note">{t.settings.noModels}</p>}
      {models !== null && (
        <fieldset className="choices">
          <legend>{t.settings.models}</legend>
          <label>
            <input
              type="radio"
              name="model"
              checked={model === null}
              onChange={() => changeSettings({ model: null })}
            />
            <span>{t.model.automatic}</span>
          </label>
          {models.map((one) => {
            const connection = connections?.find((other) => other.name === one.name);
            return (
              <div key={one.name} className="choice-row">
                <label>
                  <input
                    type="radio"
                    name="model"
                    checked={model === one.name}
                    onChange={() => changeSettings({ model: one.name })}
                  />
                  <span>
                    {one.display_name || one.name}
                    {one.is_default && <em className="tag">{t.around.models.isDefault}</em>}
                    <small>{describe(one)}</small>
                    <small>{can(one, t)}</small>
                  </span>
                </label>
                {connection && (
                  <Button small look="plain" onClick={() => setLeaving(connection)}>
                    {t.around.models.disconnect}
                  </Button>
                )}
              </div>
            );
          })}
        </fieldset>
      )}
      {connections !== null &&
        (models !== null && isDemo(models) ? (
          <ConnectModel onConnected={connected} />
        ) : (
          <details className="more">
            <summary>{t.around.models.add}</summary>
            <ConnectModel onConnected={connected} />
          </details>
        ))}
      {leaving && (
        <Confirm
          title={t.around.models.disconnect}
          question={t.around.models.disconnectQuestion}
          subject={leaving.name}
          onYes={() => void disconnect(leaving)}
          onNo={() => setLeaving(null)}
        />
      )}
    </>
  );
}

function describe(model: ModelDetails): string {
  const named = model.model !== model.name ? model.model : undefined;
  return [model.provider && providerName(model.provider), named, model.description, model.reason]
    .filter(Boolean)
    .join(" · ");
}

function can(model: ModelDetails, t: Text): string {
  const { context_window: window, pricing } = model;
  const price =
    typeof pricing?.input_per_million === "number" && typeof pricing.output_per_million === "number"
      ? t.around.models.price(
          readableCost(pricing.input_per_million, pricing.currency),
          readableCost(pricing.output_per_million, pricing.currency),
        )
      : undefined;
  return [abilities(model, t), window && t.around.models.window(window.toLocaleString()), price]
    .filter(Boolean)
    .join(" · ");
}
