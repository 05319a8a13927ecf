/** What a turn took, in one line. Invariant: nothing is said about what was not counted. */
import { readableDuration } from "../inspector/steps";
import { useText } from "../text/language";
import { useMoney } from "../usage/models";
import type { Turn } from "./turns";

export function TurnUsage({ turn }: { turn: Turn }) {
  const t = useText();
  const money = useMoney();
  const parts = [
    turn.tokens > 0 && t.tool.tokens(turn.tokens.toLocaleString()),
    turn.cost !== null && t.turn.cost(money(turn.cost)),
    turn.took !== null && readableDuration(turn.took),
  ].filter(Boolean);
  if (parts.length === 0) return null;
  const split = t.turn.split(turn.inputTokens.toLocaleString(), turn.outputTokens.toLocaleString());
  return (
    <span className="turn-usage" title={turn.tokens > 0 ? split : undefined}>
      {parts.join(" · ")}
    </span>
  );
}
