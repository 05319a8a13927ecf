/** The side panel, loaded when it is first opened. Invariant: one panel at a time. */
import type { Client } from "@langchain/langgraph-sdk";
import { lazy, Suspense } from "react";
import type { Conversation } from "../conversation/useConversation";

const FilesPanel = lazy(() => import("../files/FilesPanel").then((m) => ({ default: m.FilesPanel })));
const InspectorPanel = lazy(() => import("../inspector/InspectorPanel").then((m) => ({ default: m.InspectorPanel })));

export type Panel = { kind: "files"; path: string | null } | { kind: "inspector" };

interface Props {
  panel: Panel;
  client: Client;
  conversation: Conversation;
  onPanel(panel: Panel | null): void;
  onOpen(threadId: string): void;
}

export function SidePanel({ panel, client, conversation, onPanel, onOpen }: Props) {
  const close = () => onPanel(null);
  return (
    <div className="shell-side">
      <Suspense fallback={<div className="panel" />}>
        {panel.kind === "files" ? (
          <FilesPanel
            client={client}
            conversation={conversation}
            openPath={panel.path}
            onOpen={(path) => onPanel({ kind: "files", path })}
            onClose={close}
          />
        ) : (
          <InspectorPanel client={client} conversation={conversation} onOpen={onOpen} onClose={close} />
        )}
      </Suspense>
    </div>
  );
}
