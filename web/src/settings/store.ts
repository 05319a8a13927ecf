/**
 * What this browser remembers: theme, language, the choices in the composer.
 *
 * Invariant: what cannot be read is the default; what cannot be written is kept until the page closes.
 */
import { useSyncExternalStore } from "react";
import type { Language } from "../text/language";

export const MODES = ["flash", "thinking", "pro", "ultra"] as const;
export type Mode = (typeof MODES)[number];

export interface Settings {
  theme: "system" | "light" | "dark";
  language: Language | null;
  mode: Mode;
  model: string | null;
  assistant: string | null;
  sidebar: boolean;
}

const KEY = "hart:settings";

const DEFAULTS: Settings = {
  theme: "system",
  language: null,
  mode: "pro",
  model: null,
  assistant: null,
  sidebar: true,
};

let current: Settings = read();
const listeners = new Set<() => void>();

function read(): Settings {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Settings>;
    const settings = { ...DEFAULTS, ...stored };
    if (!MODES.includes(settings.mode)) settings.mode = DEFAULTS.mode;
    return settings;
  } catch {
    return DEFAULTS;
  }
}

export function changeSettings(change: Partial<Settings>): void {
  current = { ...current, ...change };
  try {
    localStorage.setItem(KEY, JSON.stringify(current));
  } catch {
    // Private windows may refuse; the choice still holds for this page.
  }
  applyTheme();
  for (const listener of listeners) listener();
}

export function settings(): Settings {
  return current;
}

export function useSettings(): Settings {
  return useSyncExternalStore(subscribe, settings);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function applyTheme(): void {
  const { theme } = current;
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

export function isDark(): boolean {
  if (current.theme !== "system") return current.theme === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}
