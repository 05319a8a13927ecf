/** Runs the commands by their keys. Invariant: a key without a modifier never takes a letter away from a text field. */
import { useEffect } from "react";
import { type Command, pressed } from "./command";

export function useShortcuts(commands: readonly Command[]): void {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing) return;
      // A dialog has its own keys.
      const inDialog = document.querySelector("dialog[open]") !== null;
      const command = commands.find((one) => one.keys && pressed(one.keys, event));
      if (!command || inDialog) return;
      const plain = !command.keys?.includes("mod") && !command.keys?.includes("alt") && command.keys !== "escape";
      if (plain && isTextField(event.target)) return;
      event.preventDefault();
      command.run();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, [commands]);
}

function isTextField(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}
