/**
 * What can be chosen after a slash: the page's commands, and the skills that a message can call by their names.
 *
 * Invariant: skills are asked for when somebody first types a slash; a command wins over a skill of its name.
 */
import { useEffect, useState } from "react";
import { listSkills } from "../api/native";
import type { Command } from "../palette/command";
import { matchingCommands, slashQuery } from "./slash";

export function useSlashCommands(commands: readonly Command[], text: string): Command[] {
  const query = slashQuery(text);
  const typed = query !== null;
  const [skills, setSkills] = useState<Command[] | null>(null);
  useEffect(() => {
    if (!typed || skills !== null) return;
    let alive = true;
    listSkills().then(
      (list) => {
        const usable = (list ?? []).filter((skill) => skill.enabled);
        if (alive) setSkills(usable.map(asCommand));
      },
      () => undefined,
    );
    return () => {
      alive = false;
    };
  }, [typed, skills]);
  if (query === null) return [];
  const own = matchingCommands(commands, query);
  const taken = new Set(commands.map((command) => command.slash));
  return [...own, ...matchingCommands(skills ?? [], query).filter((skill) => !taken.has(skill.slash))];
}

function asCommand({ name, description }: { name: string; description: string }): Command {
  return { id: `skill-${name}`, title: description, slash: name, insert: `/${name} `, run: () => undefined };
}
