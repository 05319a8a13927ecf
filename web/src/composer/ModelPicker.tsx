/** Which model answers. Invariant: shown only when the server says which ones there are. */
import type { ModelInfo } from "../api/native";
import { changeSettings, useSettings } from "../settings/store";
import { useText } from "../text/language";
import type { Text } from "../text/en";
import { Menu } from "../ui/Menu";

export function ModelPicker({ models }: { models: ModelInfo[] | null }) {
  const t = useText();
  const { model } = useSettings();
  if (!models || models.length === 0) return null;
  const current = models.find((one) => one.name === model);
  const choices = models.map((one) => ({
    id: one.name,
    label: one.display_name || one.name,
    hint: [one.description, abilities(one, t)].filter(Boolean).join(" · ") || undefined,
    checked: one.name === current?.name,
    onSelect: () => changeSettings({ model: one.name }),
  }));
  const automatic = {
    id: "",
    label: t.model.automatic,
    checked: !current,
    onSelect: () => changeSettings({ model: null }),
  };
  const name = current ? current.display_name || current.name : t.model.automatic;
  return (
    <Menu
      label={`${t.model.label}: ${name}`}
      className="button button-plain button-small model-picker"
      trigger={<span className="model-name">{name}</span>}
      items={[automatic, ...choices]}
      choice
    />
  );
}

export function abilities(model: ModelInfo, t: Text): string {
  return [
    model.supports_thinking && t.model.thinks,
    model.supports_reasoning_effort && t.model.effort,
    model.supports_vision && t.model.sees,
  ]
    .filter(Boolean)
    .join(", ");
}
