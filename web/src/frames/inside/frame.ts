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
  document.write(withoutRefresh(String(event.data.html ?? "")));
  document.close();
});

/** The policy stops a page that sends itself elsewhere; without this, the reader would see only that it was stopped. */
function withoutRefresh(html: string): string {
  const page = new DOMParser().parseFromString(html, "text/html");
  for (const element of page.querySelectorAll('meta[http-equiv="refresh" i], base')) element.remove();
  return `<!doctype html>${page.documentElement.outerHTML}`;
}

parent.postMessage({ type: "hart:ready" }, "*");
