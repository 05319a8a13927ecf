/** The activity of the running turn, for the cards. Invariant: only what shows it is drawn again when it changes. */
import { createContext, useContext } from "react";
import { type Activity, QUIET, type SubagentStep } from "./activity";

export interface ActivityView extends Activity {
  /** The steps of a subagent that the stream carried in its own namespace. */
  inner(callId: string): SubagentStep[];
}

export const ActivityContext = createContext<ActivityView>({ ...QUIET, inner: () => [] });

export function useActivity(): ActivityView {
  return useContext(ActivityContext);
}
