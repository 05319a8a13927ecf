/** The goal above the composer. Invariant: one line, with why it is not reached where a judge said so. */
import type { Goal } from "../api/conversation";
import { useText } from "../text/language";
import { IconButton } from "../ui/Button";
import { Icon } from "../ui/Icon";

export function GoalChip({ goal, onClear }: { goal: Goal; onClear(): void }) {
  const t = useText();
  const why = goal.last_evaluation?.satisfied === false ? goal.last_evaluation.reason : undefined;
  const rounds = goal.continuation_count ?? 0;
  return (
    <section className="goal" aria-label={t.goal.title}>
      <Icon name="flag" size={16} />
      <span className="goal-text" dir="auto" title={why ? `${goal.objective}\n\n${why}` : goal.objective}>
        <strong>{goal.objective}</strong>
        {why && <span className="goal-why"> {why}</span>}
      </span>
      {rounds > 0 && <span className="plan-count">{t.goal.rounds(rounds)}</span>}
      <IconButton small label={t.goal.clear} icon="close" onClick={onClear} />
    </section>
  );
}
