/**
 * Where a task is written: text, files, mode and model, slash commands.
 *
 * Invariant: what was typed is kept per conversation until it is sent.
 */
import {
  type ClipboardEvent,
  type KeyboardEvent,
  type Ref,
  type RefObject,
  useEffect,
  useImperativeHandle,
  useRef,
  useState,
} from "react";
import type { ModelInfo } from "../api/native";
import type { AttachedFile } from "../conversation/message";
import { readableSize } from "../files/fileKind";
import type { Command } from "../palette/command";
import { useText } from "../text/language";
import { Button, IconButton } from "../ui/Button";
import { AttachmentList } from "./AttachmentList";
import { clearDraft, readDraft, writeDraft } from "./draft";
import { ModelPicker } from "./ModelPicker";
import { ModePicker } from "./ModePicker";
import { PolishButton } from "./PolishButton";
import { SlashMenu } from "./SlashMenu";
import { takenBy } from "./slash";
import { useAttachments } from "./useAttachments";
import { useDrop } from "./useDrop";
import { useSlashCommands } from "./useSlashCommands";
import "./composer.css";

interface Props {
  threadId: string | null;
  busy: boolean;
  canPolish: boolean;
  models: ModelInfo[] | null;
  commands: Command[];
  field: RefObject<HTMLTextAreaElement | null>;
  handle: Ref<ComposerHandle>;
  /** Files belong to a thread: a first upload makes one. */
  ensureThread(): Promise<string>;
  onSend(text: string, files: AttachedFile[]): void;
  onStop(): void;
}

export interface ComposerHandle {
  /** What did not get through; what was written since stays. */
  putBack(text: string, files: AttachedFile[]): void;
  /** The files of the message that is being written, as far as they are from this visit. */
  files(): File[];
}

/** From here on a message is better a file. */
const LONG = 200_000;

export function Composer(props: Props) {
  const { threadId, busy, field, onSend, onStop } = props;
  const t = useText();
  const [text, setText] = useState(() => readDraft(threadId));
  const [chosen, setChosen] = useState(0);
  const picker = useRef<HTMLInputElement>(null);
  const attachments = useAttachments(threadId, props.ensureThread);
  const dropping = useDrop(attachments.add);
  const offered = useSlashCommands(props.commands, text);

  const change = (value: string) => {
    setText(value);
    setChosen(0);
    writeDraft(threadId, value);
  };
  useFieldHeight(field, text);
  useDraftOwner(threadId, text);
  useImperativeHandle(props.handle, () => ({
    files: attachments.local,
    putBack(unsent, files) {
      attachments.putBack(files);
      const now = field.current?.value ?? "";
      change(now.trim() === "" || now === unsent ? unsent : `${unsent}\n\n${now}`);
    },
  }));

  const ready = (text.trim() !== "" || attachments.finished.length > 0) && !attachments.pending;
  const send = () => {
    if (!ready) return;
    const taken = takenBy(props.commands, text);
    if (taken) {
      change("");
      return taken.command.take?.(taken.words);
    }
    onSend(text.trim(), attachments.finished);
    clearDraft(threadId);
    setText("");
    attachments.send();
  };
  const run = (command: Command) => {
    change(command.insert ?? "");
    if (command.insert) field.current?.focus();
    else command.run();
  };
  const attachText = () => {
    attachments.add([new File([text], t.attach.textName, { type: "text/plain" })]);
    change("");
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
  const onPaste = (event: ClipboardEvent) => {
    if (event.clipboardData.files.length > 0) {
      event.preventDefault();
      attachments.add([...event.clipboardData.files]);
    }
  };
  return (
    <form
      className={dropping ? "composer composer-dropping" : "composer"}
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {offered.length > 0 && <SlashMenu commands={offered} chosen={chosen} onChoose={run} />}
      <AttachmentList attachments={attachments.list} onRemove={attachments.remove} onRetry={attachments.retry} />
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
      {text.length > LONG && (
        <p className="composer-note">
          {t.composer.longText(readableSize(text.length))}
          <Button small icon="attach" onClick={attachText}>
            {t.attach.asFile}
          </Button>
        </p>
      )}
      <div className="composer-bar">
        <IconButton label={t.composer.attach} icon="attach" onClick={() => picker.current?.click()} />
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          aria-label={t.composer.attach}
          onChange={(event) => {
            attachments.add([...(event.target.files ?? [])]);
            event.target.value = "";
          }}
        />
        {props.canPolish && <PolishButton text={text} onChange={change} />}
        <ModePicker />
        <ModelPicker models={props.models} />
        <span className="composer-space" />
        {busy && <IconButton className="composer-stop" label={t.composer.stop} icon="stop" onClick={onStop} />}
        {(!busy || text.trim() !== "" || attachments.list.length > 0) && (
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

/** What was begun without a thread goes with the thread that it got. */
function useDraftOwner(threadId: string | null, text: string): void {
  const before = useRef(threadId);
  useEffect(() => {
    if (before.current === null && threadId !== null) {
      clearDraft(null);
      writeDraft(threadId, text);
    }
    before.current = threadId;
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [threadId]);
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
