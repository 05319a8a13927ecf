/** The state at a step, as it is stored. Invariant: long ones are cut, not left to freeze the page. */
import type { RawState } from "./steps";

const LONGEST = 20_000;

export function StateView({ state }: { state: RawState | undefined }) {
  return (
    <pre className="tool-text scroll-thin" tabIndex={0}>
      {(JSON.stringify(state?.values, null, 2) ?? "").slice(0, LONGEST)}
    </pre>
  );
}
