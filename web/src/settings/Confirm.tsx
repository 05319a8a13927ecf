/** Asks before something is lost. Invariant: the way back comes first. */
import { useText } from "../text/language";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";

interface Props {
  title: string;
  question: string;
  subject: string;
  onYes(): void;
  onNo(): void;
}

export function Confirm({ title, question, subject, onYes, onNo }: Props) {
  const t = useText();
  return (
    <Dialog title={title} onClose={onNo}>
      <p>{question}</p>
      <p>
        <strong>{subject}</strong>
      </p>
      <div className="dialog-actions">
        <Button onClick={onNo}>{t.cancel}</Button>
        <Button look="danger" onClick={onYes}>
          {title}
        </Button>
      </div>
    </Dialog>
  );
}
