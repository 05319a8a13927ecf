/** The languages that get colours. Invariant: loaded only when code is shown. */
import { common, createLowlight } from "lowlight";

export const lowlight = createLowlight(common);
