/**
 * Modal dialogs, on the browser's own element: it keeps the focus inside and closes on Escape.
 *
 * Invariant: what had the focus before has it again afterwards.
 */
import { type ReactNode, useEffect, useId, useRef } from "react";
import { useText } from "../text/language";
import { IconButton } from "./Button";

interface DialogProps {
  title: string;
  wide?: boolean;
  bare?: boolean;
  onClose(): void;
  children: ReactNode;
}

export function Dialog({ title, wide, bare, onClose, children }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const t = useText();
  const heading = useId();
  useEffect(() => {
    const before = document.activeElement;
    const dialog = ref.current;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      className={wide ? "dialog dialog-wide" : "dialog"}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === ref.current) onClose();
      }}
    >
      <div className={bare ? "unseen" : "dialog-head"}>
        <h2 id={heading}>{title}</h2>
        {!bare && <IconButton label={t.close} icon="close" onClick={onClose} />}
      </div>
      {bare ? children : <div className="dialog-body">{children}</div>}
    </dialog>
  );
}
