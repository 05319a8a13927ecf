/** Messages that wait for the current run. Invariant: each can be taken back until its turn comes. */
import type { QueuedMessage } from "../conversation/queue";
import { useText } from "../text/language";
import { IconButton } from "../ui/Button";

export function QueueList({ queue, onRemove }: { queue: QueuedMessage[]; onRemove(runId: string): void }) {
  const t = useText();
  if (queue.length === 0) return null;
  return (
    <section className="queue" aria-label={t.queued.title}>
      <h3>{t.queued.title}</h3>
      <ul>
        {queue.map((one) => (
          <li key={one.runId}>
            <span className="queue-text" dir="auto">
              {one.text}
            </span>
            <IconButton small label={t.queued.remove} icon="close" onClick={() => onRemove(one.runId)} />
          </li>
        ))}
      </ul>
    </section>
  );
}
