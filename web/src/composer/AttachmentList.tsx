/** Files that go with the message. Invariant: how far each is, or why it failed, is also text. */
import { readableSize } from "../files/fileKind";
import { useText } from "../text/language";
import { IconButton } from "../ui/Button";
import { Icon } from "../ui/Icon";
import type { Attachment } from "./useAttachments";

interface Props {
  attachments: Attachment[];
  onRemove(id: number): void;
  onRetry(id: number): void;
}

export function AttachmentList({ attachments, onRemove, onRetry }: Props) {
  const t = useText();
  if (attachments.length === 0) return null;
  return (
    <ul className="attachments" aria-label={t.attach.title}>
      {attachments.map((one) => (
        <li key={one.id} className={one.error ? "attachment attachment-bad" : "attachment"}>
          <Icon name={one.error ? "warning" : "file"} size={15} />
          <span className="attachment-name" dir="auto" title={one.name}>
            {one.name}
          </span>
          <span className="attachment-state" role={one.error ? "alert" : undefined}>
            {one.error ?? (one.done ? readableSize(one.size) : t.composer.uploading(Math.round(one.progress * 100)))}
          </span>
          {!one.done && !one.error && <progress value={one.progress} max={1} aria-label={one.name} />}
          {one.error && one.again && (
            <IconButton small label={t.attach.again(one.name)} icon="again" onClick={() => onRetry(one.id)} />
          )}
          <IconButton small label={t.composer.removeFile(one.name)} icon="close" onClick={() => onRemove(one.id)} />
        </li>
      ))}
    </ul>
  );
}
