/** What a run changed in the workspace. Invariant: asked anew when the run is done. */
import type { Client } from "@langchain/langgraph-sdk";
import { useEffect, useId, useState } from "react";
import { type WorkspaceChanges, workspaceChanges } from "../api/native";
import { useText } from "../text/language";
import { shortPath } from "../tools/kind";
import { DiffView } from "../tools/DiffView";
import { parseUnified } from "../tools/difference";
import { Field } from "../ui/Field";

interface Props {
  client: Client;
  threadId: string | null;
  busy: boolean;
}

/** Further back, the inspector shows what was done. */
const RUNS = 20;

export function ChangesView({ client, threadId, busy }: Props) {
  const t = useText();
  const id = useId();
  const runs = useRuns(client, threadId, busy);
  const [chosen, setChosen] = useState<string | null>(null);
  const runId = runs.some((run) => run.id === chosen) ? chosen : (runs[0]?.id ?? null);
  const [changes, setChanges] = useState<WorkspaceChanges | null>(null);
  useEffect(() => {
    if (!threadId || !runId || busy) return;
    let alive = true;
    setChanges(null);
    workspaceChanges(threadId, runId).then(
      (found) => alive && setChanges(found ?? {}),
      () => alive && setChanges({}),
    );
    return () => {
      alive = false;
    };
  }, [threadId, runId, busy]);
  const files = changes?.files ?? [];
  return (
    <>
      {runs.length > 1 && (
        <Field id={id} label={t.around.files.run}>
          <select id={id} className="field" value={runId ?? ""} onChange={(event) => setChosen(event.target.value)}>
            {runs.map((run) => (
              <option key={run.id} value={run.id}>
                {new Date(run.at).toLocaleString()}
              </option>
            ))}
          </select>
        </Field>
      )}
      {changes === null && runId && <p className="panel-note">{t.files.loading}</p>}
      {(changes !== null || !runId) && files.length === 0 && <p className="panel-note">{t.files.noChanges}</p>}
      {files.map((file) => (
        <section key={file.path} className="change" aria-label={file.path}>
          <h3>
            {shortPath(file.path)} <small>{t.around.files.statuses[file.status] ?? file.status}</small>{" "}
            {(file.additions || file.deletions) && (
              <small>{t.around.files.lines(file.additions ?? 0, file.deletions ?? 0)}</small>
            )}
          </h3>
          {file.diff ? (
            <DiffView lines={parseUnified(file.diff)} />
          ) : (
            <p className="tool-note">{file.diff_unavailable_reason ?? t.tool.binary}</p>
          )}
        </section>
      ))}
    </>
  );
}

interface PastRun {
  id: string;
  at: string;
}

/** Newest first; also those of earlier visits. */
function useRuns(client: Client, threadId: string | null, busy: boolean): PastRun[] {
  const [runs, setRuns] = useState<PastRun[]>([]);
  useEffect(() => {
    if (!threadId || busy) return;
    let alive = true;
    client.runs.list(threadId, { limit: RUNS }).then(
      (found) => alive && setRuns(found.map((run) => ({ id: run.run_id, at: run.created_at }))),
      () => undefined,
    );
    return () => {
      alive = false;
    };
  }, [client, threadId, busy]);
  return runs;
}
