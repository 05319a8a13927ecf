/** How hard the agent thinks. Invariant: each mode says what it does. */
import { changeSettings, MODES, useSettings } from "../settings/store";
import { useText } from "../text/language";
import { Menu } from "../ui/Menu";

export function ModePicker() {
  const t = useText();
  const { mode } = useSettings();
  return (
    <Menu
      label={`${t.modes.label}: ${t.modes[mode]}`}
      title={t.modes[`${mode}Hint`]}
      className="button button-plain button-small"
      trigger={t.modes[mode]}
      choice
      items={MODES.map((one) => ({
        id: one,
        label: t.modes[one],
        hint: t.modes[`${one}Hint`],
        checked: one === mode,
        onSelect: () => changeSettings({ mode: one }),
      }))}
    />
  );
}
