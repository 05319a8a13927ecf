/** What the run is doing right now, told to screen readers too. Invariant: one line that does not move what is above it. */
import { useText } from "../text/language";
import { Worded } from "../ui/Worded";
import type { Activity } from "./activity";
import { useSlow } from "./useSlow";

export function RunStatus({ activity, sending }: { activity: Activity; sending: boolean }) {
  const t = useText();
  const { waiting } = activity;
  const slow = useSlow(sending);
  return (
    <p className="run-status" role="status">
      <span className="spinner" />
      {waiting ? (
        <span>
          {t.message.waiting}
          {waiting.message ? (
            <>
              : <Worded text={waiting.message} />
            </>
          ) : (
            waiting.attempt && waiting.maxAttempts && ` (${t.message.attempt(waiting.attempt, waiting.maxAttempts)})`
          )}
        </span>
      ) : (
        <span>{slow ? t.turn.slowServer : t.message.working}</span>
      )}
    </p>
  );
}
