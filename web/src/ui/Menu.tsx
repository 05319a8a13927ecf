/**
 * A button with a menu: arrows move, Escape closes, the focus returns.
 *
 * Invariant: the menu is on the top layer, so that nothing cuts it off.
 */
import { type KeyboardEvent, type ReactNode, useEffect, useId, useLayoutEffect, useRef, useState } from "react";
import { Icon, type IconName } from "./Icon";
import "./ui.css";

export interface MenuItem {
  id: string;
  label: string;
  hint?: string | undefined;
  icon?: IconName;
  danger?: boolean;
  /** For a choice of one. */
  checked?: boolean;
  onSelect(): void;
}

interface MenuProps {
  label: string;
  items: MenuItem[];
  trigger: ReactNode;
  className?: string;
  title?: string;
  /** What is chosen stands on the button; a mark says that there is more to choose from. */
  choice?: boolean;
}

export function Menu({ label, items, trigger, className, title, choice }: MenuProps) {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const id = useId();

  useLayoutEffect(() => {
    const menu = list.current;
    if (!open || !menu) return;
    menu.showPopover?.();
    place(menu, button.current);
    const chosen = menu.querySelector<HTMLElement>("[aria-checked=true]") ?? menu.querySelector<HTMLElement>("button");
    chosen?.focus();
  }, [open]);

  useEffect(() => {
    if (!open) return;
    const away = (event: Event) => {
      const target = event.target as Node;
      if (!list.current?.contains(target) && !button.current?.contains(target)) setOpen(false);
    };
    document.addEventListener("pointerdown", away);
    window.addEventListener("resize", away);
    return () => {
      document.removeEventListener("pointerdown", away);
      window.removeEventListener("resize", away);
    };
  }, [open]);

  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const entries = [...(list.current?.querySelectorAll<HTMLElement>("button") ?? [])];
    const at = entries.indexOf(document.activeElement as HTMLElement);
    const go = (index: number) => entries.at(index % entries.length)?.focus();
    if (event.key === "Escape" || event.key === "Tab") close();
    else if (event.key === "ArrowDown") go(at + 1);
    else if (event.key === "ArrowUp") go(at - 1);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(-1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        className={className ?? "button button-icon button-small"}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        aria-label={label}
        title={title ?? label}
        onClick={(event) => {
          event.stopPropagation();
          setOpen(!open);
        }}
      >
        {trigger}
        {choice && (
          <span className="menu-mark">
            <Icon name="chevron" size={12} />
          </span>
        )}
      </button>
      {open && (
        <div
          ref={list}
          id={id}
          className="menu scroll-thin"
          role="menu"
          aria-label={label}
          popover="manual"
          onKeyDown={onKeyDown}
        >
          {items.map((item) => (
            <button
              key={item.id}
              type="button"
              role={item.checked === undefined ? "menuitem" : "menuitemradio"}
              aria-checked={item.checked}
              tabIndex={-1}
              className={item.danger ? "menu-item menu-item-danger" : "menu-item"}
              onClick={(event) => {
                event.stopPropagation();
                close();
                item.onSelect();
              }}
            >
              {item.icon && <Icon name={item.icon} size={16} />}
              <span>
                {item.label}
                {item.hint && <span className="menu-hint">{item.hint}</span>}
              </span>
              {item.checked && <Icon name="check" size={16} />}
            </button>
          ))}
        </div>
      )}
    </>
  );
}

function place(menu: HTMLElement, anchor: HTMLElement | null): void {
  if (!anchor) return;
  const at = anchor.getBoundingClientRect();
  const size = menu.getBoundingClientRect();
  const below = at.bottom + 4 + size.height <= innerHeight;
  const left = Math.max(8, Math.min(at.left, innerWidth - size.width - 8));
  const top = below ? at.bottom + 4 : Math.max(8, at.top - size.height - 4);
  menu.style.left = `${left}px`;
  menu.style.top = `${top}px`;
}
