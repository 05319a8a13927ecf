/** What a run changed in the workspace. Invariant: asked anew when the run is done. */
import { useEffect, useState } from "react";
import { type WorkspaceChanges, workspaceChanges } from "../api/native";
import { useText } from "../text/language";
import { DiffView } from "../tools/DiffView";
import { parseUnified } from "../tools/difference";

interface Props {
  threadId: string | null;
  runId: string | null;
  busy: boolean;
}

export function ChangesView({ threadId, runId, busy }: Props) {
  const t = useText();
  const [changes, setChanges] = useState<WorkspaceChanges | null>(null);
  useEffect(() => {
    if (!threadId || !runId || busy) return;
    let alive = true;
    workspaceChanges(threadId, runId).then(
      (found) => alive && setChanges(found),
      () => undefined,
    );
    return () => {
      alive = false;
    };
  }, [threadId, runId, busy]);
  const files = changes?.files ?? [];
  if (files.length === 0) return <p className="panel-note">{t.files.noChanges}</p>;
  return (
    <>
      {files.map((file) => (
        <section key={file.path} className="change">
          <h3>
            {file.path} <small>{file.status}</small>
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
