/** Theme and language. Invariant: a choice shows at once. */
import { useText } from "../text/language";
import { changeSettings, useSettings } from "./store";

const LANGUAGES = [
  { value: null, label: null },
  { value: "en", label: "English" },
  { value: "zh", label: "中文" },
] as const;

export function AppearanceSettings() {
  const t = useText();
  const { theme, language } = useSettings();
  return (
    <>
      <fieldset className="choices">
        <legend>{t.settings.theme}</legend>
        {(["system", "light", "dark"] as const).map((one) => (
          <label key={one}>
            <input type="radio" name="theme" checked={theme === one} onChange={() => changeSettings({ theme: one })} />
            <span>{t.settings[one]}</span>
          </label>
        ))}
      </fieldset>
      <fieldset className="choices">
        <legend>{t.settings.language}</legend>
        {LANGUAGES.map(({ value, label }) => (
          <label key={value ?? "system"}>
            <input
              type="radio"
              name="language"
              checked={language === value}
              onChange={() => changeSettings({ language: value })}
            />
            <span lang={value ?? undefined}>{label ?? t.settings.system}</span>
          </label>
        ))}
      </fieldset>
    </>
  );
}
