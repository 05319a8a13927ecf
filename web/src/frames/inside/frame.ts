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
  document.write(withoutRefused(String(event.data.html ?? "")));
  document.close();
});

/**
 * The policy refuses all of these already. But a browser that is refused a frame has opened the connection before, which
 * tells a name; and a page that sends itself elsewhere would leave the reader with an error instead of the page.
 */
const REFUSED = 'meta[http-equiv="refresh" i], base, link, iframe, frame, frameset, object, embed, portal, fencedframe';

function withoutRefused(html: string): string {
  const page = new DOMParser().parseFromString(html, "text/html");
  for (const element of page.querySelectorAll(REFUSED)) element.remove();
  return `<!doctype html>${page.documentElement.outerHTML}`;
}

parent.postMessage({ type: "hart:ready" }, "*");
