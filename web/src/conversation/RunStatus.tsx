/** What the run is doing right now, told to screen readers too. Invariant: one line that does not move what is above it. */
import { useText } from "../text/language";
import type { Activity } from "./activity";

export function RunStatus({ activity }: { activity: Activity }) {
  const t = useText();
  const { waiting } = activity;
  return (
    <p className="run-status" role="status">
      <span className="spinner" />
      {waiting ? (
        <span>
          {t.message.waiting}
          {waiting.attempt && waiting.maxAttempts && ` (${t.message.attempt(waiting.attempt, waiting.maxAttempts)})`}
          {waiting.message && `: ${waiting.message}`}
        </span>
      ) : (
        <span>{t.message.working}</span>
      )}
    </p>
  );
}
