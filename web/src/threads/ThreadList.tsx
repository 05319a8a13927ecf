/** Conversations, newest first, by age. Invariant: the open one is marked for eyes and for screen readers. */
import { type RefObject, useState } from "react";
import { readFailure } from "../api/failure";
import { pathOf } from "../app/route";
import { useText } from "../text/language";
import { Button, IconButton } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Icon } from "../ui/Icon";
import { say } from "../ui/toast";
import { groupByAge, matchesSearch, type ThreadSummary } from "./thread";
import { ThreadItem } from "./ThreadItem";
import type { Threads } from "./useThreads";
import "./threads.css";

interface Props {
  threads: Threads;
  openId: string | null;
  search: RefObject<HTMLInputElement | null>;
  onOpen(id: string | null): void;
  onExport(id: string): void;
  onSettings(): void;
  onHide(): void;
}

export function ThreadList({ threads, openId, search, onOpen, onExport, onSettings, onHide }: Props) {
  const t = useText();
  const [query, setQuery] = useState("");
  const [removing, setRemoving] = useState<ThreadSummary | null>(null);
  const shown = threads.list.filter((thread) => matchesSearch(thread, query));
  const groups = groupByAge(shown, Date.now());
  const complain = (error: unknown) => say(t.failures[readFailure(error).kind].title);
  const remove = (thread: ThreadSummary) => {
    setRemoving(null);
    if (thread.id === openId) onOpen(null);
    threads.remove(thread.id).catch(complain);
  };
  return (
    <nav className="threads" aria-label={t.threads}>
      <div className="threads-head">
        <a
          className="brand"
          href={pathOf(null)}
          onClick={(event) => {
            event.preventDefault();
            onOpen(null);
          }}
        >
          <img src="/favicon.svg" alt="" width="24" height="24" /> {t.name}
        </a>
        <IconButton label={t.hideSidebar} icon="sidebar" onClick={onHide} />
      </div>
      <Button className="new-chat" icon="plus" onClick={() => onOpen(null)}>
        {t.newChat}
      </Button>
      <div className="threads-search">
        <Icon name="search" size={16} />
        <input
          ref={search}
          type="search"
          className="field"
          aria-label={t.searchThreads}
          placeholder={t.searchThreads}
          value={query}
          onChange={(event) => {
            setQuery(event.target.value);
            if (event.target.value) threads.reach();
          }}
        />
      </div>
      <div className="threads-scroll scroll-thin" tabIndex={-1}>
        {threads.failure && <p className="threads-note">{t.failures[threads.failure.kind].title}</p>}
        {!threads.loading && !threads.failure && shown.length === 0 && (
          <p className="threads-note">
            {query ? (threads.more ? t.around.threads.searching : t.noMatch) : t.noThreads}
          </p>
        )}
        {groups.map(([age, members]) => (
          <section key={age} aria-label={t.ages[age]}>
            <h2>{t.ages[age]}</h2>
            <ul>
              {members.map((thread) => (
                <ThreadItem
                  key={thread.id}
                  thread={thread}
                  open={thread.id === openId}
                  onOpen={() => onOpen(thread.id)}
                  onChange={(change) => threads.change(thread.id, change).catch(complain)}
                  onExport={() => onExport(thread.id)}
                  onRemove={() => setRemoving(thread)}
                />
              ))}
            </ul>
          </section>
        ))}
        {threads.more && !query && (
          <Button small look="plain" onClick={threads.loadMore}>
            {t.loadMore}
          </Button>
        )}
      </div>
      <div className="threads-foot">
        <Button look="plain" icon="gear" onClick={onSettings}>
          {t.settings.title}
        </Button>
      </div>
      {removing && (
        <Dialog title={t.remove} onClose={() => setRemoving(null)}>
          <p>{t.removeQuestion}</p>
          <p>
            <strong>{removing.title ?? t.untitled}</strong>
          </p>
          <div className="dialog-actions">
            <Button onClick={() => setRemoving(null)}>{t.cancel}</Button>
            <Button look="danger" onClick={() => remove(removing)}>
              {t.remove}
            </Button>
          </div>
        </Dialog>
      )}
    </nav>
  );
}
