/**
 * Short words that go away by themselves, also told to screen readers.
 *
 * Invariant: nothing is said only here; what must be acted upon stands in the page.
 */
import { useSyncExternalStore } from "react";
import "./ui.css";

interface Toast {
  id: number;
  text: string;
}

let toasts: Toast[] = [];
let nextId = 1;
const listeners = new Set<() => void>();

export function say(text: string): void {
  const toast = { id: nextId++, text };
  change([...toasts.slice(-2), toast]);
  setTimeout(() => change(toasts.filter((one) => one !== toast)), 3500);
}

function change(next: Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <div className="toasts" role="status" aria-live="polite">
      {shown.map((toast) => (
        <div key={toast.id} className="toast">
          {toast.text}
        </div>
      ))}
    </div>
  );
}
