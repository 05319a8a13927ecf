/** A label and what it names. Invariant: side by side, so that the name is the label's words and nothing else. */
import type { ReactNode } from "react";

export function Field({ id, label, children }: { id: string; label: ReactNode; children: ReactNode }) {
  return (
    <div className="form-field">
      <label htmlFor={id}>{label}</label>
      {children}
    </div>
  );
}
