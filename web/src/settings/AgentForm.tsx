/** Makes an agent or changes one. Invariant: what is left out is as the lead agent has it. */
import { useId, useState } from "react";
import { type AgentSettings, createAgent, type OwnAgent, updateAgent } from "../api/around";
import { readFailure } from "../api/failure";
import type { ModelInfo } from "../api/native";
import { useText } from "../text/language";
import { Button } from "../ui/Button";
import { Field } from "../ui/Field";
import { say } from "../ui/toast";

interface Props {
  /** None for a new one. */
  agent: OwnAgent | null;
  models: ModelInfo[];
  skills: string[];
  onDone(): void;
  onCancel(): void;
}

const TOOL_GROUPS = ["file:read", "file:write", "bash"];
const EFFORTS = ["low", "medium", "high"];

export function AgentForm({ agent, models, skills, onDone, onCancel }: Props) {
  const t = useText();
  const words = t.around.agents;
  const id = useId();
  const [name, setName] = useState(agent?.name ?? "");
  const [description, setDescription] = useState(agent?.description ?? "");
  const [model, setModel] = useState(agent?.model ?? "");
  const [effort, setEffort] = useState(agent?.reasoning_effort ?? "");
  const [soul, setSoul] = useState(agent?.soul ?? "");
  const [tools, setTools] = useState<string[] | null>(agent?.tool_groups ?? null);
  const [chosen, setChosen] = useState<string[] | null>(agent?.skills ?? null);
  const [problem, setProblem] = useState<string | null>(null);
  const [saving, setSaving] = useState(false);
  const save = async () => {
    setSaving(true);
    setProblem(null);
    // What was set once is only unset by saying so; an empty word is how the server is told.
    const settings: AgentSettings = {
      description,
      soul,
      ...(model || agent?.model ? { model } : {}),
      ...(effort ? { reasoning_effort: effort } : {}),
      ...(tools ? { tool_groups: tools } : {}),
      ...(chosen ? { skills: chosen } : {}),
    };
    try {
      const saved = agent ? await updateAgent(agent.name, settings) : await createAgent(name.trim(), settings);
      if (!saved) throw new Error(words.off);
      say(words.saved);
      onDone();
    } catch (error) {
      setProblem(readFailure(error).detail);
      setSaving(false);
    }
  };
  return (
    <form
      className="form"
      aria-label={agent ? words.edit(agent.name) : words.create}
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <h3>{agent ? words.edit(agent.name) : words.create}</h3>
      {!agent && (
        <Field id={`${id}-name`} label={words.name}>
          <input
            id={`${id}-name`}
            className="field"
            required
            maxLength={64}
            pattern="[A-Za-z0-9\-]+"
            title={words.nameHint}
            placeholder={words.nameHint}
            spellCheck={false}
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        </Field>
      )}
      <Field id={`${id}-description`} label={words.description}>
        <input
          id={`${id}-description`}
          className="field"
          value={description}
          onChange={(event) => setDescription(event.target.value)}
        />
      </Field>
      <Field id={`${id}-soul`} label={words.soul}>
        <textarea
          id={`${id}-soul`}
          className="field"
          rows={6}
          dir="auto"
          value={soul}
          onChange={(event) => setSoul(event.target.value)}
        />
      </Field>
      <div className="form-pair">
        <Field id={`${id}-model`} label={words.model}>
          <select id={`${id}-model`} className="field" value={model} onChange={(event) => setModel(event.target.value)}>
            <option value="">{words.asRun}</option>
            {model && !models.some((one) => one.name === model) && <option value={model}>{model}</option>}
            {models.map((one) => (
              <option key={one.name} value={one.name}>
                {one.display_name || one.name}
              </option>
            ))}
          </select>
        </Field>
        <Field id={`${id}-effort`} label={words.effort}>
          <select
            id={`${id}-effort`}
            className="field"
            value={effort}
            onChange={(event) => setEffort(event.target.value)}
          >
            {/* What was written down can be changed over HTTP, but not taken away. */}
            {!agent?.reasoning_effort && <option value="">{words.asRun}</option>}
            {EFFORTS.map((one) => (
              <option key={one} value={one}>
                {words.efforts[one]}
              </option>
            ))}
          </select>
        </Field>
      </div>
      <Some
        title={words.tools}
        all={words.allTools}
        some={words.someTools}
        options={TOOL_GROUPS.map((group) => ({ value: group, label: words.toolGroups[group] ?? group }))}
        chosen={tools}
        canBeAll={!agent?.tool_groups}
        onChange={setTools}
      />
      {skills.length > 0 && (
        <Some
          title={words.skills}
          all={words.allSkills}
          some={words.someSkills}
          options={skills.map((skill) => ({ value: skill, label: skill }))}
          chosen={chosen}
          canBeAll={!agent?.skills}
          onChange={setChosen}
        />
      )}
      {problem && (
        <p className="tool-note tool-note-bad" role="alert">
          {problem}
        </p>
      )}
      <div className="dialog-actions">
        <Button onClick={onCancel}>{t.cancel}</Button>
        <Button type="submit" look="primary" disabled={saving}>
          {agent ? t.save : t.around.create}
        </Button>
      </div>
    </form>
  );
}

interface SomeProps {
  title: string;
  all: string;
  some: string;
  options: { value: string; label: string }[];
  /** None for all. */
  chosen: string[] | null;
  /** A list that was written down can be changed over HTTP, but not taken away. */
  canBeAll: boolean;
  onChange(chosen: string[] | null): void;
}

function Some({ title, all, some, options, chosen, canBeAll, onChange }: SomeProps) {
  const id = useId();
  const known = [
    ...options,
    ...(chosen ?? []).filter((one) => !options.some((option) => option.value === one)).map(same),
  ];
  const toggle = (value: string, on: boolean) =>
    onChange(on ? [...(chosen ?? []), value] : (chosen ?? []).filter((one) => one !== value));
  return (
    <fieldset className="choices some">
      <legend>{title}</legend>
      {canBeAll && (
        <label>
          <input type="radio" name={id} checked={chosen === null} onChange={() => onChange(null)} />
          <span>{all}</span>
        </label>
      )}
      <label>
        <input type="radio" name={id} checked={chosen !== null} onChange={() => onChange([])} />
        <span>{some}</span>
      </label>
      {chosen !== null && (
        <div className="some-list">
          {known.map((option) => (
            <label key={option.value}>
              <input
                type="checkbox"
                checked={chosen.includes(option.value)}
                onChange={(event) => toggle(option.value, event.target.checked)}
              />
              <span>{option.label}</span>
            </label>
          ))}
        </div>
      )}
    </fieldset>
  );
}

function same(value: string): { value: string; label: string } {
  return { value, label: value };
}
