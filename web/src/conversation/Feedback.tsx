/** What a person thinks of an answer. Invariant: pressing the chosen thumb again takes it back; words are never required. */
import { useState } from "react";
import type { Opinion } from "../api/conversation";
import { useText } from "../text/language";
import { Button, IconButton } from "../ui/Button";

interface Props {
  opinion: Opinion | null;
  onRate(opinion: Opinion | null): void;
}

export function Feedback({ opinion, onRate }: Props) {
  const t = useText();
  const press = (rating: 1 | -1) => onRate(opinion?.rating === rating ? null : { rating });
  return (
    <>
      <IconButton
        small
        className={opinion?.rating === 1 ? "rated" : ""}
        aria-pressed={opinion?.rating === 1}
        label={t.message.good}
        icon="up"
        onClick={() => press(1)}
      />
      <IconButton
        small
        className={opinion?.rating === -1 ? "rated" : ""}
        aria-pressed={opinion?.rating === -1}
        label={t.message.bad}
        icon="down"
        onClick={() => press(-1)}
      />
    </>
  );
}

/** Open from the moment somebody rates until it is sent or closed. */
export function FeedbackComment({ opinion, onRate, onClose }: Props & { opinion: Opinion; onClose(): void }) {
  const t = useText();
  const [words, setWords] = useState(opinion.comment ?? "");
  const send = () => {
    onClose();
    if (words.trim() !== (opinion.comment ?? "")) onRate({ rating: opinion.rating, comment: words.trim() });
  };
  return (
    <form
      className="feedback"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        className="field"
        aria-label={opinion.rating === 1 ? t.turn.whyGood : t.turn.whyBad}
        placeholder={opinion.rating === 1 ? t.turn.whyGood : t.turn.whyBad}
        rows={2}
        maxLength={4000}
        dir="auto"
        value={words}
        onChange={(event) => setWords(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onClose();
          if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
            event.preventDefault();
            send();
          }
        }}
      />
      <div className="feedback-actions">
        <Button small look="plain" onClick={onClose}>
          {t.close}
        </Button>
        <Button small type="submit">
          {t.turn.sendComment}
        </Button>
      </div>
    </form>
  );
}
