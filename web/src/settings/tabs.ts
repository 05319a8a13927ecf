/** The subjects of the settings. Invariant: named here, so that the page can open one without loading them. */
export const TABS = ["appearance", "models", "agents", "skills", "usage", "connection", "shortcuts"] as const;
export type SettingsTab = (typeof TABS)[number];
