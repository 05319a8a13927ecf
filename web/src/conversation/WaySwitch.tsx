/** Moves between the ways a conversation went from one message. Invariant: says which of how many is shown. */
import type { Fork } from "../api/conversation";
import { useText } from "../text/language";
import { IconButton } from "../ui/Button";

interface Props {
  fork: Fork;
  onSwitch(checkpointId: string): void;
}

export function WaySwitch({ fork, onSwitch }: Props) {
  const t = useText();
  const { current, ways } = fork;
  const go = (index: number) => {
    const way = ways[index];
    if (way) onSwitch(way.checkpoint_id);
  };
  return (
    <span className="ways when-idle" role="group" aria-label={t.turn.ways}>
      <IconButton
        small
        className="ways-back"
        label={t.turn.earlierWay}
        icon="chevron"
        disabled={current === 0}
        onClick={() => go(current - 1)}
      />
      <span>{t.turn.way(current + 1, ways.length)}</span>
      <IconButton
        small
        label={t.turn.laterWay}
        icon="chevron"
        disabled={current === ways.length - 1}
        onClick={() => go(current + 1)}
      />
    </span>
  );
}
