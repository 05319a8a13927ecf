/** What went wrong and what to do about it. Invariant: plain words first, the other side's own words below. */
import type { Failure } from "../api/failure";
import { useText } from "../text/language";
import { Button } from "../ui/Button";
import { Icon } from "../ui/Icon";
import { Worded } from "../ui/Worded";

interface Props {
  failure: Failure;
  onRetry?: (() => void) | undefined;
  onSettings?: (() => void) | undefined;
  /** A new conversation, with what was being written. */
  onNew?: (() => void) | undefined;
}

export function FailureNotice({ failure, onRetry, onSettings, onNew }: Props) {
  const t = useText();
  const words = t.failures[failure.kind];
  return (
    <div className="notice notice-bad" role="alert">
      <Icon name="warning" />
      <div className="notice-text">
        <h3>{words.title}</h3>
        <p>
          <Worded text={words.next} />
        </p>
        {failure.detail && (
          <details>
            <summary>{t.failureDetail}</summary>
            <pre className="tool-text">{failure.detail.slice(0, 2000)}</pre>
          </details>
        )}
        <div className="notice-actions">
          {failure.kind === "token" && onSettings && (
            <Button small onClick={onSettings}>
              {t.settings.title}
            </Button>
          )}
          {failure.kind === "gone" && onNew && (
            <Button small icon="plus" onClick={onNew}>
              {t.newChat}
            </Button>
          )}
          {onRetry && !["gone", "token", "offline"].includes(failure.kind) && (
            <Button small icon="again" onClick={onRetry}>
              {t.retry}
            </Button>
          )}
        </div>
      </div>
    </div>
  );
}
