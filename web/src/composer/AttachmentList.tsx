/** Files that go with the message. Invariant: each shows how far it is, and can be taken back. */
import { readableSize } from "../files/fileKind";
import { useText } from "../text/language";
import { IconButton } from "../ui/Button";
import { Icon } from "../ui/Icon";
import type { Attachment } from "./useAttachments";

export function AttachmentList({ attachments, onRemove }: { attachments: Attachment[]; onRemove(id: number): void }) {
  const t = useText();
  if (attachments.length === 0) return null;
  return (
    <ul className="attachments">
      {attachments.map((one) => (
        <li key={one.id} className={one.error ? "attachment attachment-bad" : "attachment"}>
          <Icon name="file" size={15} />
          <span className="attachment-name">{one.name}</span>
          <span className="attachment-state">
            {one.error ?? (one.done ? readableSize(one.size) : t.composer.uploading(Math.round(one.progress * 100)))}
          </span>
          {!one.done && !one.error && <progress value={one.progress} max={1} aria-label={one.name} />}
          <IconButton small label={t.composer.removeFile(one.name)} icon="close" onClick={() => onRemove(one.id)} />
        </li>
      ))}
    </ul>
  );
}
