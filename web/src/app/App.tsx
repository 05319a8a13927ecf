/**
 * The page: conversations on the left, one of them in the middle, its files or its run on the right.
 *
 * Invariant: the address says which conversation is open; reloading it shows the same.
 */
import { lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { createClient } from "../api/connection";
import { compactThread } from "../api/conversation";
import { readFailure } from "../api/failure";
import { ConversationView } from "../conversation/ConversationView";
import { FileOpenerContext } from "../files/openFile";
import { CommandPalette } from "../palette/CommandPalette";
import { useShortcuts } from "../palette/useShortcuts";
import { changeSettings, isDark, useSettings } from "../settings/store";
import type { SettingsTab } from "../settings/tabs";
import { useText } from "../text/language";
import { exportMarkdown } from "../threads/export";
import { ThreadList } from "../threads/ThreadList";
import { useThreads } from "../threads/useThreads";
import { ModelsContext } from "../usage/models";
import { downloadText } from "../ui/clipboard";
import { say, Toasts } from "../ui/toast";
import { buildCommands } from "./commands";
import { ErrorBoundary } from "./ErrorBoundary";
import { Header } from "./Header";
import { navigate } from "./route";
import type { Panel } from "./SidePanel";
import { useOpenThread } from "./openThread";
import { useReconnect } from "./reconnect";
import { useServer } from "./server";
import "./app.css";

const SettingsDialog = lazy(() => import("../settings/SettingsDialog").then((m) => ({ default: m.SettingsDialog })));

const NO_MODELS: never[] = [];

export function App() {
  const t = useText();
  const { assistant, sidebar } = useSettings();
  const [client, setClient] = useState(createClient);
  const server = useServer(client);
  const open = useOpenThread();
  const threads = useThreads(client, open.threadId);
  const { offline, lost } = useReconnect(() => {
    open.remount();
    threads.refresh();
    void server.ask();
    say(t.reconnected);
  });
  const [panel, setPanel] = useState<Panel | null>(null);
  const [palette, setPalette] = useState(false);
  const [settingsTab, setSettingsTab] = useState<SettingsTab | null>(null);
  const [drawer, setDrawer] = useState(false);
  const [busy, setBusy] = useState(false);
  const stop = useRef<() => void>(() => {});
  const field = useRef<HTMLTextAreaElement>(null);
  const search = useRef<HTMLInputElement>(null);

  useEffect(() => {
    if (server.failure?.kind === "offline") lost();
    if (server.failure?.kind === "token") setSettingsTab("connection");
  }, [server.failure, lost]);

  const openThread = useCallback((id: string | null) => {
    setDrawer(false);
    setPanel(null);
    navigate(id);
    setTimeout(() => field.current?.focus());
  }, []);
  const exportThread = useCallback(
    async (id: string) => {
      const thread = await client.threads.get<{ messages?: never[] }>(id);
      const title = String(thread.metadata?.title ?? t.untitled);
      downloadText(`${title}.md`, exportMarkdown(title, thread.values?.messages ?? [], t.message));
    },
    [client, t],
  );
  const compact = useCallback(
    async (id: string) => {
      const answer = await compactThread(id);
      say(answer.compacted ? t.compact.done : t.compact.nothing);
    },
    [t],
  );
  const complain = useCallback((error: unknown) => say(t.failures[readFailure(error).kind].title), [t]);

  const { threadId } = open;
  const commands = useMemo(
    () =>
      buildCommands(t, {
        newChat: () => {
          open.reset();
          openThread(null);
        },
        search: () => {
          changeSettings({ sidebar: true });
          setDrawer(true);
          setTimeout(() => search.current?.focus());
        },
        palette: () => setPalette(true),
        files: () => setPanel((now) => (now?.kind === "files" ? null : { kind: "files", path: null })),
        inspector: () => setPanel((now) => (now?.kind === "inspector" ? null : { kind: "inspector" })),
        settings: () => setSettingsTab("appearance"),
        help: () => setSettingsTab("shortcuts"),
        theme: () => changeSettings({ theme: isDark() ? "light" : "dark" }),
        sidebar: () => changeSettings({ sidebar: !sidebar }),
        focus: () => field.current?.focus(),
        stop: busy ? () => stop.current() : undefined,
        export: threadId ? () => void exportThread(threadId).catch(complain) : undefined,
        compact: threadId && !busy ? () => void compact(threadId).catch(complain) : undefined,
      }),
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [t, openThread, sidebar, busy, threadId, exportThread, compact, complain],
  );
  useShortcuts(commands);

  const agents = server.info?.assistants ?? [];
  // What was chosen for this conversation, what is chosen for new ones, the first there is: as far as they are there.
  const listed = threads.list.find((thread) => thread.id === threadId);
  const assistantId =
    [listed?.agent, assistant].find((id) => agents.some((one) => one.id === id)) ?? agents[0]?.id ?? "lead_agent";
  const assistantKnown = (server.info !== null || server.failure !== null) && threads.openKnown;
  const chooseAgent = (id: string) => {
    if (threadId) threads.change(threadId, { agent: id }).catch(complain);
    else changeSettings({ assistant: id });
  };
  const opener = useMemo(() => ({ threadId, open: (path: string) => setPanel({ kind: "files", path }) }), [threadId]);
  const title = listed?.title ?? null;
  useEffect(() => {
    document.title = title ? `${title} · hart` : "hart";
  }, [title]);
  const shell = ["shell", sidebar && "shell-sidebar", drawer && "shell-drawer", panel && "shell-panel"];
  return (
    <FileOpenerContext value={opener}>
      <ModelsContext value={server.info?.models ?? NO_MODELS}>
        <div className={shell.filter(Boolean).join(" ")}>
          <div className="shell-threads">
            <ThreadList
              threads={threads}
              openId={threadId}
              search={search}
              onOpen={(id) => {
                if (id === null) open.reset();
                openThread(id);
              }}
              onExport={(id) => void exportThread(id).catch(complain)}
              onSettings={() => setSettingsTab("appearance")}
              onHide={() => {
                setDrawer(false);
                changeSettings({ sidebar: false });
              }}
            />
          </div>
          <button
            type="button"
            className="shell-shade"
            aria-label={t.close}
            tabIndex={-1}
            onClick={() => setDrawer(false)}
          />
          <ErrorBoundary text={t} key={open.key}>
            <ConversationView
              client={client}
              assistantId={assistantId}
              assistantKnown={assistantKnown}
              threadId={threadId}
              info={server.info}
              commands={commands}
              field={field}
              stopper={stop}
              panel={panel}
              head={
                <>
                  <Header
                    title={title}
                    agents={agents}
                    agent={assistantId}
                    onAgent={chooseAgent}
                    panel={panel?.kind ?? null}
                    onMenu={() => {
                      setDrawer(true);
                      changeSettings({ sidebar: true });
                    }}
                    onFiles={() => setPanel(panel?.kind === "files" ? null : { kind: "files", path: null })}
                    onInspector={() => setPanel(panel?.kind === "inspector" ? null : { kind: "inspector" })}
                  />
                  {offline && (
                    <p className="banner" role="status">
                      <span className="spinner" /> {t.reconnecting}
                    </p>
                  )}
                </>
              }
              onThread={(id) => {
                open.adopt(id);
                // It keeps the agent that it began with, whatever is chosen for others later.
                if (agents.length > 1) void client.threads.update(id, { metadata: { agent: assistantId } });
                threads.refresh();
              }}
              onOpen={(id) => {
                threads.refresh();
                openThread(id);
              }}
              onNew={() => {
                open.reset();
                openThread(null);
              }}
              onReload={open.remount}
              onBusy={setBusy}
              onPanel={setPanel}
              onChanged={threads.refresh}
              onOffline={lost}
              onSettings={() => setSettingsTab("connection")}
              onLookAgain={server.ask}
            />
          </ErrorBoundary>
        </div>
        {palette && (
          <CommandPalette
            commands={commands}
            threads={threads.list}
            onOpen={openThread}
            onClose={() => setPalette(false)}
          />
        )}
        {settingsTab && (
          <Suspense fallback={null}>
            <SettingsDialog
              tab={settingsTab}
              info={server.info}
              commands={commands}
              onChanged={() => setClient(createClient())}
              onLookAgain={server.ask}
              onOpen={(id) => {
                setSettingsTab(null);
                openThread(id);
              }}
              onClose={() => setSettingsTab(null)}
            />
          </Suspense>
        )}
        <Toasts />
      </ModelsContext>
    </FileOpenerContext>
  );
}
