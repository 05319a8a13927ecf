/** Which agent answers, and agents of one's own. Invariant: what the server refused stays in the form, with its reason. */
import { useCallback, useEffect, useState } from "react";
import { deleteAgent, type OwnAgent } from "../api/around";
import { readFailure } from "../api/failure";
import { listAgents, listSkills } from "../api/native";
import type { ServerInfo } from "../app/server";
import { useText } from "../text/language";
import { Button } from "../ui/Button";
import { say } from "../ui/toast";
import { AgentForm } from "./AgentForm";
import { Confirm } from "./Confirm";
import { changeSettings, useSettings } from "./store";

interface Props {
  info: ServerInfo | null;
  onLookAgain(): Promise<void>;
}

export function AgentSettings({ info, onLookAgain }: Props) {
  const { assistant } = useSettings();
  const t = useText();
  const words = t.around.agents;
  const [own, setOwn] = useState<OwnAgent[] | null | undefined>(undefined);
  const [skills, setSkills] = useState<string[]>([]);
  const [editing, setEditing] = useState<OwnAgent | "new" | null>(null);
  const [leaving, setLeaving] = useState<OwnAgent | null>(null);
  const load = useCallback(async () => setOwn(await listAgents().catch(() => null)), []);
  useEffect(() => {
    void load();
    listSkills().then(
      (found) => setSkills((found ?? []).map((skill) => skill.name)),
      () => undefined,
    );
  }, [load]);
  const changed = async () => {
    setEditing(null);
    await Promise.all([load(), onLookAgain()]);
  };
  const remove = async (agent: OwnAgent) => {
    setLeaving(null);
    try {
      await deleteAgent(agent.name);
      const gone = info?.assistants.find((one) => one.name === agent.name);
      if (gone && gone.id === assistant) changeSettings({ assistant: null });
      say(words.removed);
      await changed();
    } catch (error) {
      say(readFailure(error).detail);
    }
  };
  if (editing) {
    return (
      <AgentForm
        agent={editing === "new" ? null : editing}
        models={info?.models ?? []}
        skills={skills}
        onDone={() => void changed()}
        onCancel={() => setEditing(null)}
      />
    );
  }
  const assistants = info?.assistants ?? [];
  const current = assistants.some((one) => one.id === assistant) ? assistant : assistants[0]?.id;
  return (
    <>
      <fieldset className="choices">
        <legend>{words.choose}</legend>
        {assistants.map((one) => (
          <label key={one.id}>
            <input
              type="radio"
              name="assistant"
              checked={one.id === current}
              onChange={() => changeSettings({ assistant: one.id })}
            />
            <span>
              {one.name}
              {one.description && <small>{one.description}</small>}
            </span>
          </label>
        ))}
      </fieldset>
      <h3>{words.own}</h3>
      {own === null && <p className="panel-note">{words.off}</p>}
      {own?.length === 0 && <p className="panel-note">{words.none}</p>}
      {own && own.length > 0 && (
        <ul className="choices">
          {own.map((agent) => (
            <li key={agent.name} className="choice-row">
              <span>
                {agent.name}
                {agent.description && <small>{agent.description}</small>}
              </span>
              <Button
                small
                look="plain"
                icon="edit"
                aria-label={words.edit(agent.name)}
                onClick={() => setEditing(agent)}
              >
                {t.edit}
              </Button>
              <Button
                small
                look="plain"
                icon="trash"
                aria-label={`${t.remove}: ${agent.name}`}
                onClick={() => setLeaving(agent)}
              >
                {t.remove}
              </Button>
            </li>
          ))}
        </ul>
      )}
      {own && (
        <Button icon="plus" onClick={() => setEditing("new")}>
          {words.create}
        </Button>
      )}
      {leaving && (
        <Confirm
          title={t.remove}
          question={words.removeQuestion(leaving.name)}
          subject={leaving.name}
          onYes={() => void remove(leaving)}
          onNo={() => setLeaving(null)}
        />
      )}
    </>
  );
}
