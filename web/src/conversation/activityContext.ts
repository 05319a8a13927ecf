/** The activity of the running turn, for the cards. Invariant: only what shows it is drawn again when it changes. */
import { createContext, useContext } from "react";
import { type Activity, QUIET } from "./activity";

export const ActivityContext = createContext<Activity>(QUIET);

export function useActivity(): Activity {
  return useContext(ActivityContext);
}
