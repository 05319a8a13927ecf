/**
 * Where a task is written: text, files, mode and model, slash commands.
 *
 * Invariant: what was typed is kept per conversation until it is sent.
 */
import {
  type ClipboardEvent,
  type DragEvent,
  type KeyboardEvent,
  type RefObject,
  useEffect,
  useRef,
  useState,
} from "react";
import type { ModelInfo } from "../api/native";
import type { AttachedFile } from "../conversation/message";
import { readableSize } from "../files/fileKind";
import type { Command } from "../palette/command";
import { useText } from "../text/language";
import { IconButton } from "../ui/Button";
import { AttachmentList } from "./AttachmentList";
import { clearDraft, readDraft, writeDraft } from "./draft";
import { ModelPicker } from "./ModelPicker";
import { ModePicker } from "./ModePicker";
import { SlashMenu } from "./SlashMenu";
import { matchingCommands, slashQuery } from "./slash";
import { useAttachments } from "./useAttachments";
import "./composer.css";

interface Props {
  threadId: string | null;
  busy: boolean;
  canAttach: boolean;
  models: ModelInfo[] | null;
  commands: Command[];
  field: RefObject<HTMLTextAreaElement | null>;
  /** Files belong to a thread: a first upload makes one. */
  ensureThread(): Promise<string>;
  onSend(text: string, files: AttachedFile[]): void;
  onStop(): void;
}

/** From here on a message is better a file. */
const LONG = 200_000;

export function Composer(props: Props) {
  const { threadId, busy, field, onSend, onStop } = props;
  const t = useText();
  const [text, setText] = useState(() => readDraft(threadId));
  const [chosen, setChosen] = useState(0);
  const [dropping, setDropping] = useState(false);
  const picker = useRef<HTMLInputElement>(null);
  const attachments = useAttachments(props.ensureThread);
  const query = slashQuery(text);
  const offered = query === null ? [] : matchingCommands(props.commands, query);

  const change = (value: string) => {
    setText(value);
    setChosen(0);
    writeDraft(threadId, value);
  };
  useFieldHeight(field, text);

  const ready = (text.trim() !== "" || attachments.finished.length > 0) && !attachments.pending;
  const send = () => {
    if (!ready) return;
    onSend(text.trim(), attachments.finished);
    clearDraft(threadId);
    setText("");
    attachments.clear();
  };
  const run = (command: Command) => {
    change("");
    command.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    if (offered.length > 0) {
      if (event.key === "ArrowDown") setChosen((chosen + 1) % offered.length);
      else if (event.key === "ArrowUp") setChosen((chosen + offered.length - 1) % offered.length);
      else if (event.key === "Escape") change("");
      else if (event.key === "Enter" || event.key === "Tab") run(offered[chosen] as Command);
      else return;
      event.preventDefault();
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      send();
    }
  };
  const take = (files: Iterable<File>) => {
    if (props.canAttach) attachments.add([...files]);
  };
  const onPaste = (event: ClipboardEvent) => {
    if (event.clipboardData.files.length > 0) {
      event.preventDefault();
      take(event.clipboardData.files);
    }
  };
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setDropping(false);
    take(event.dataTransfer.files);
  };
  return (
    <form
      className={dropping ? "composer composer-dropping" : "composer"}
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      onDragOver={(event) => {
        if (!props.canAttach || !event.dataTransfer.types.includes("Files")) return;
        event.preventDefault();
        setDropping(true);
      }}
      onDragLeave={() => setDropping(false)}
      onDrop={onDrop}
    >
      {offered.length > 0 && <SlashMenu commands={offered} chosen={chosen} onChoose={run} />}
      <AttachmentList attachments={attachments.list} onRemove={attachments.remove} />
      {dropping && <p className="tool-note">{t.composer.dropHere}</p>}
      <textarea
        ref={field}
        className="composer-text scroll-thin"
        aria-label={t.composer.label}
        aria-controls={offered.length > 0 ? "slash-menu" : undefined}
        aria-activedescendant={offered.length > 0 ? `slash-${chosen}` : undefined}
        placeholder={busy ? t.composer.placeholderBusy : t.composer.placeholder}
        rows={1}
        dir="auto"
        value={text}
        onChange={(event) => change(event.target.value)}
        onKeyDown={onKeyDown}
        onPaste={onPaste}
      />
      {text.length > LONG && <p className="tool-note">{t.composer.longText(readableSize(text.length))}</p>}
      <div className="composer-bar">
        {props.canAttach && (
          <>
            <IconButton label={t.composer.attach} icon="attach" onClick={() => picker.current?.click()} />
            <input
              ref={picker}
              type="file"
              multiple
              hidden
              aria-label={t.composer.attach}
              onChange={(event) => {
                take(event.target.files ?? []);
                event.target.value = "";
              }}
            />
          </>
        )}
        <ModePicker />
        <ModelPicker models={props.models} />
        <span className="composer-space" />
        {busy && <IconButton className="composer-stop" label={t.composer.stop} icon="stop" onClick={onStop} />}
        {(!busy || text.trim() !== "") && (
          <IconButton
            type="submit"
            className="composer-send"
            label={busy ? t.composer.queue : t.composer.send}
            icon="send"
            disabled={!ready}
          />
        )}
      </div>
    </form>
  );
}

/** Grows with its text, up to a third of the page. */
function useFieldHeight(field: RefObject<HTMLTextAreaElement | null>, text: string): void {
  useEffect(() => {
    const element = field.current;
    if (!element) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight, innerHeight / 3)}px`;
  }, [field, text]);
}
