/**
 * Which language the page speaks.
 *
 * Invariant: a choice wins over the browser's languages; English is the last resort.
 */
import { createContext, useContext, useEffect } from "react";
import type { ReactNode } from "react";
import { useSettings } from "../settings/store";
import { en, type Text } from "./en";
import { zh } from "./zh";

export type Language = "en" | "zh";

const TEXTS: Record<Language, Text> = { en, zh };

const TextContext = createContext<Text>(en);

export function browserLanguage(languages: readonly string[]): Language {
  for (const language of languages) {
    if (language.toLowerCase().startsWith("zh")) return "zh";
    if (language.toLowerCase().startsWith("en")) return "en";
  }
  return "en";
}

export function LanguageProvider({ children }: { children: ReactNode }) {
  const { language } = useSettings();
  const chosen = language ?? browserLanguage(navigator.languages);
  useEffect(() => {
    document.documentElement.lang = chosen;
  }, [chosen]);
  return <TextContext value={TEXTS[chosen]}>{children}</TextContext>;
}

export function useText(): Text {
  return useContext(TextContext);
}
