/** The page's commands with their keys and slash words. Invariant: one that cannot be done now is not offered. */
import type { Command } from "../palette/command";
import type { Text } from "../text/en";

type Action = (() => void) | undefined;

export interface Actions {
  newChat: Action;
  search: Action;
  palette: Action;
  files: Action;
  inspector: Action;
  settings: Action;
  help: Action;
  theme: Action;
  sidebar: Action;
  focus: Action;
  stop: Action;
  export: Action;
  compact: Action;
}

export function buildCommands(t: Text, actions: Actions): Command[] {
  const table: [keyof Actions, string, string | undefined, string | undefined][] = [
    ["newChat", t.commands.newChat, "mod+shift+o", "new"],
    ["palette", t.commands.palette, "mod+k", undefined],
    ["search", t.commands.search, "mod+shift+f", "search"],
    ["focus", t.commands.focus, "shift+escape", undefined],
    ["stop", t.commands.stop, "escape", "stop"],
    ["files", t.commands.files, "mod+shift+e", "files"],
    ["inspector", t.commands.inspector, "mod+shift+i", "inspect"],
    ["sidebar", t.commands.sidebar, "mod+shift+s", undefined],
    ["theme", t.commands.theme, "mod+shift+l", "theme"],
    ["settings", t.commands.settings, "mod+,", "settings"],
    ["export", t.commands.exportThread, undefined, "export"],
    ["compact", t.commands.compact, undefined, "compact"],
    ["help", t.commands.help, "mod+/", "help"],
  ];
  return table.flatMap(([id, title, keys, slash]): Command[] => {
    const run = actions[id];
    return run ? [{ id, title, run, ...(keys ? { keys } : {}), ...(slash ? { slash } : {}) }] : [];
  });
}
