/** Skills, on and off. Invariant: a switch that the server refused goes back. */
import { useEffect, useState } from "react";
import { listSkills, setSkillEnabled, type SkillInfo } from "../api/native";
import { useText } from "../text/language";
import { say } from "../ui/toast";

export function SkillSettings() {
  const t = useText();
  const [skills, setSkills] = useState<SkillInfo[] | null | undefined>(undefined);
  useEffect(() => {
    listSkills().then(setSkills, () => setSkills(null));
  }, []);
  if (skills === undefined) return <p className="panel-note">{t.files.loading}</p>;
  if (skills === null || skills.length === 0) return <p className="panel-note">{t.settings.noSkills}</p>;
  const toggle = (skill: SkillInfo) => {
    const set = (enabled: boolean) =>
      setSkills((now) => now?.map((one) => (one.name === skill.name ? { ...one, enabled } : one)));
    set(!skill.enabled);
    setSkillEnabled(skill.name, !skill.enabled).catch((error: unknown) => {
      set(skill.enabled);
      say(String(error));
    });
  };
  return (
    <ul className="choices">
      {skills.map((skill) => (
        <li key={skill.name}>
          <label>
            <input type="checkbox" checked={skill.enabled} onChange={() => toggle(skill)} />
            <span>
              {skill.name}
              <small>{skill.description}</small>
            </span>
          </label>
        </li>
      ))}
    </ul>
  );
}
