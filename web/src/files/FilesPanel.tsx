/** The conversation's files, and one of them at a time. Invariant: what cannot be read says so; nothing stays blank. */
import type { Client } from "@langchain/langgraph-sdk";
import { useState } from "react";
import type { Conversation } from "../conversation/useConversation";
import { useText } from "../text/language";
import { baseName, shortPath } from "../tools/kind";
import { IconButton } from "../ui/Button";
import { Icon } from "../ui/Icon";
import { filesOfConversation } from "./artifacts";
import { ChangesView } from "./ChangesView";
import { FileView } from "./FileView";
import "../ui/panel.css";
import "./files.css";

interface Props {
  client: Client;
  conversation: Conversation;
  openPath: string | null;
  onOpen(path: string | null): void;
  onClose(): void;
}

export function FilesPanel({ client, conversation, openPath, onOpen, onClose }: Props) {
  const t = useText();
  const { threadId, messages, values, busy } = conversation;
  const [tab, setTab] = useState<"files" | "changes">("files");
  const files = filesOfConversation(messages, values.artifacts);
  return (
    <aside className="panel" aria-label={t.files.title}>
      <header className="panel-head">
        {openPath && <IconButton label={t.files.back} icon="list" onClick={() => onOpen(null)} />}
        <h2 title={openPath ?? undefined}>{openPath ? baseName(openPath) : t.files.title}</h2>
        <IconButton label={t.close} icon="close" onClick={onClose} />
      </header>
      {openPath && threadId ? (
        <FileView key={openPath} threadId={threadId} path={openPath} busy={busy} />
      ) : (
        <>
          <div className="tabs" role="tablist">
            {(["files", "changes"] as const).map((one) => (
              <button key={one} type="button" role="tab" aria-selected={tab === one} onClick={() => setTab(one)}>
                {one === "files" ? t.files.title : t.files.changes}
              </button>
            ))}
          </div>
          <div className="panel-body scroll-thin">
            {tab === "changes" ? (
              <ChangesView client={client} threadId={threadId} busy={busy} />
            ) : files.length === 0 ? (
              <p className="panel-note">{t.files.none}</p>
            ) : (
              <ul className="file-list">
                {files.map((file) => (
                  <li key={file.path}>
                    <button type="button" onClick={() => onOpen(file.path)}>
                      <Icon name="file" size={17} />
                      <span className="file-name">
                        {baseName(file.path)}
                        <small>{shortPath(file.path)}</small>
                      </span>
                      <small>{t.files[file.origin]}</small>
                    </button>
                  </li>
                ))}
              </ul>
            )}
          </div>
        </>
      )}
    </aside>
  );
}
