/**
 * Runs inside the sandboxed frame: takes a page written by somebody else and shows it.
 *
 * Invariant: the frame has no origin, no network and no storage; the policy it was served with decides what may run.
 */

interface Show {
  type: "hart:show";
  html: string;
}

addEventListener("message", (event: MessageEvent<Partial<Show>>) => {
  if (event.source !== parent || event.data?.type !== "hart:show") return;
  document.open();
  document.write(String(event.data.html ?? ""));
  document.close();
});

parent.postMessage({ type: "hart:ready" }, "*");
