/** Skills: on and off, what each says, and taking one in. Invariant: a switch that the server refused goes back. */
import { type DragEvent, useCallback, useEffect, useRef, useState } from "react";
import { deleteSkill, installSkillFile, readSkill } from "../api/around";
import { readFailure } from "../api/failure";
import { listSkills, setSkillEnabled, type SkillInfo } from "../api/native";
import { PlainCode } from "../markdown/CodeBlock";
import { useText } from "../text/language";
import { Button } from "../ui/Button";
import { say } from "../ui/toast";
import { Confirm } from "./Confirm";

const MANY = 8;

export function SkillSettings() {
  const t = useText();
  const words = t.around.skills;
  const [skills, setSkills] = useState<SkillInfo[] | null | undefined>(undefined);
  const [query, setQuery] = useState("");
  const [leaving, setLeaving] = useState<SkillInfo | null>(null);
  const load = useCallback(() => listSkills().then(setSkills, () => setSkills(null)), []);
  useEffect(() => void load(), [load]);
  if (skills === undefined) return <p className="panel-note">{t.files.loading}</p>;
  if (skills === null) return <p className="panel-note">{t.settings.noSkills}</p>;
  const toggle = (skill: SkillInfo) => {
    const set = (enabled: boolean) =>
      setSkills((now) => now?.map((one) => (one.name === skill.name ? { ...one, enabled } : one)));
    set(!skill.enabled);
    setSkillEnabled(skill.name, !skill.enabled).catch((error: unknown) => {
      set(skill.enabled);
      say(readFailure(error).detail);
    });
  };
  const remove = async (skill: SkillInfo) => {
    setLeaving(null);
    try {
      await deleteSkill(skill.name);
      say(words.removed(skill.name));
    } catch (error) {
      say(readFailure(error).detail);
    }
    await load();
  };
  const found = skills.filter((skill) =>
    `${skill.name} ${skill.description}`.toLocaleLowerCase().includes(query.trim().toLocaleLowerCase()),
  );
  const categories = [...new Set(found.map((skill) => skill.category ?? ""))];
  return (
    <>
      <Install onInstalled={load} />
      {skills.length === 0 && <p className="panel-note">{t.settings.noSkills}</p>}
      {skills.length > MANY && (
        <input
          type="search"
          className="field"
          aria-label={words.filter}
          placeholder={words.filter}
          value={query}
          onChange={(event) => setQuery(event.target.value)}
        />
      )}
      {query && found.length === 0 && <p className="panel-note">{t.noMatch}</p>}
      {categories.map((category) => (
        <section key={category}>
          <h3>{words.categories[category] ?? category}</h3>
          <ul className="choices">
            {found
              .filter((skill) => (skill.category ?? "") === category)
              .map((skill) => (
                <SkillItem
                  key={skill.name}
                  skill={skill}
                  onToggle={() => toggle(skill)}
                  onRemove={skill.category === "public" ? undefined : () => setLeaving(skill)}
                />
              ))}
          </ul>
        </section>
      ))}
      {leaving && (
        <Confirm
          title={t.remove}
          question={words.removeQuestion}
          subject={leaving.name}
          onYes={() => void remove(leaving)}
          onNo={() => setLeaving(null)}
        />
      )}
    </>
  );
}

interface ItemProps {
  skill: SkillInfo;
  onToggle(): void;
  /** What comes with hart stays. */
  onRemove: (() => void) | undefined;
}

function SkillItem({ skill, onToggle, onRemove }: ItemProps) {
  const t = useText();
  const [text, setText] = useState<string | null>(null);
  const show = () => {
    if (text !== null) return setText(null);
    readSkill(skill.name).then(
      (read) => setText(read?.content ?? ""),
      (error: unknown) => say(readFailure(error).detail),
    );
  };
  return (
    <li>
      <div className="choice-row">
        <label>
          <input type="checkbox" checked={skill.enabled} onChange={onToggle} />
          <span>
            {skill.name}
            <small>{skill.description}</small>
          </span>
        </label>
        <Button
          small
          look="plain"
          aria-expanded={text !== null}
          aria-label={`${text === null ? t.around.show : t.around.hide}: ${skill.name}`}
          onClick={show}
        >
          {text === null ? t.around.show : t.around.hide}
        </Button>
        {onRemove && (
          <Button small look="plain" icon="trash" aria-label={`${t.remove}: ${skill.name}`} onClick={onRemove}>
            {t.remove}
          </Button>
        )}
      </div>
      {text !== null && (
        <div className="skill-text">
          <PlainCode code={text} language="markdown" />
        </div>
      )}
    </li>
  );
}

/** By button or by drop. */
function Install({ onInstalled }: { onInstalled(): Promise<void> }) {
  const t = useText();
  const words = t.around.skills;
  const picker = useRef<HTMLInputElement>(null);
  const [busy, setBusy] = useState(false);
  const [over, setOver] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const install = async (file: File | undefined) => {
    if (!file) return;
    setProblem(null);
    if (!file.name.toLowerCase().endsWith(".skill")) return setProblem(words.notASkill);
    setBusy(true);
    try {
      const name = await installSkillFile(file);
      say(words.installed(name));
      await onInstalled();
    } catch (error) {
      setProblem(readFailure(error).detail);
    } finally {
      setBusy(false);
    }
  };
  const drag = (event: DragEvent, inside: boolean) => {
    event.preventDefault();
    setOver(inside);
  };
  return (
    <div
      className={over ? "drop drop-over" : "drop"}
      onDragOver={(event) => drag(event, true)}
      onDragLeave={(event) => drag(event, false)}
      onDrop={(event) => {
        drag(event, false);
        void install(event.dataTransfer.files[0]);
      }}
    >
      <input
        ref={picker}
        type="file"
        accept=".skill"
        className="unseen"
        tabIndex={-1}
        aria-label={words.install}
        onChange={(event) => {
          void install(event.target.files?.[0]);
          event.target.value = "";
        }}
      />
      <Button icon="plus" disabled={busy} onClick={() => picker.current?.click()}>
        {words.install}
      </Button>
      <span role="status">{busy ? words.installing : words.drop}</span>
      {problem && (
        <div className="notice notice-bad" role="alert">
          <div>
            <h3>{words.refused}</h3>
            <p className="lines">{problem}</p>
          </div>
        </div>
      )}
    </div>
  );
}
