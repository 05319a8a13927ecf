/** Messages that wait for the current run. Invariant: they wait on the server, so that a reload loses none. */

export interface QueuedMessage {
  runId: string;
  text: string;
}
