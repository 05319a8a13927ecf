/** What the user said. Invariant: drawn again only when it changes. */
import { memo, useState } from "react";
import type { Fork } from "../api/conversation";
import { FileLink } from "../markdown/FileLink";
import { useText } from "../text/language";
import { Button, IconButton } from "../ui/Button";
import { BranchMenu } from "./BranchLinks";
import type { RowHandlers } from "./handlers";
import { MessageActions } from "./MessageActions";
import { filesOf, picturesOf, textOf } from "./message";
import type { HumanRow } from "./rows";
import type { BranchLink } from "./useBranches";
import { WaySwitch } from "./WaySwitch";

interface Props {
  row: HumanRow;
  handlers: RowHandlers;
  fork: Fork | undefined;
  branches: BranchLink[] | undefined;
}

export const HumanMessage = memo(function HumanMessage({ row, handlers, fork, branches }: Props) {
  const t = useText();
  const [editing, setEditing] = useState(false);
  const text = textOf(row.message);
  const id = row.message.id;
  if (editing && id) {
    const finish = (edited: string) => {
      setEditing(false);
      handlers.editAndAsk(id, edited);
    };
    return <EditMessage text={text} onCancel={() => setEditing(false)} onDone={finish} />;
  }
  return (
    <article className="message message-human" aria-label={t.message.you}>
      <div className="bubble">
        {picturesOf(row.message).map(
          (picture, index) => picture.data && <img key={index} className="picture" src={picture.data} alt="" />,
        )}
        <LongText text={text} />
        <div className="attached">
          {filesOf(row.message).map((file) =>
            file.path ? (
              <FileLink key={file.path} path={file.path}>
                {file.filename}
              </FileLink>
            ) : (
              <span key={file.filename}>{file.filename}</span>
            ),
          )}
        </div>
      </div>
      <div className="message-foot">
        <MessageActions text={text}>
          {id && (
            <span className="when-idle">
              <IconButton small label={t.message.edit} icon="edit" onClick={() => setEditing(true)} />
              <IconButton small label={t.turn.branchHere} icon="branch" onClick={() => handlers.branch(id)} />
            </span>
          )}
          {branches && <BranchMenu branches={branches} onOpen={handlers.open} />}
        </MessageActions>
        {fork && <WaySwitch fork={fork} onSwitch={handlers.go} />}
      </div>
    </article>
  );
});

const SHOWN = 3000;

function LongText({ text }: { text: string }) {
  const t = useText();
  const [all, setAll] = useState(false);
  if (text.length <= SHOWN) {
    return (
      <p className="said" dir="auto">
        {text}
      </p>
    );
  }
  return (
    <>
      <p className="said" dir="auto">
        {all ? text : `${text.slice(0, SHOWN)}…`}
      </p>
      <Button small look="plain" onClick={() => setAll(!all)}>
        {all ? t.tool.showLess : t.tool.showAll}
      </Button>
    </>
  );
}

function EditMessage({ text, onCancel, onDone }: { text: string; onCancel(): void; onDone(text: string): void }) {
  const t = useText();
  const [draft, setDraft] = useState(text);
  return (
    <form
      className="message message-human message-editing"
      onSubmit={(event) => {
        event.preventDefault();
        if (draft.trim()) onDone(draft);
      }}
    >
      <textarea
        className="field"
        aria-label={t.message.edit}
        rows={Math.min(10, draft.split("\n").length + 1)}
        value={draft}
        autoFocus
        dir="auto"
        onChange={(event) => setDraft(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onCancel();
          if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
            event.preventDefault();
            if (draft.trim()) onDone(draft);
          }
        }}
      />
      <div className="dialog-actions">
        <Button onClick={onCancel}>{t.cancel}</Button>
        <Button look="primary" type="submit" disabled={!draft.trim()}>
          {t.message.sendEdited}
        </Button>
      </div>
    </form>
  );
}
