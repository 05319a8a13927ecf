/**
 * Diagrams, drawn in one hidden frame that is made when the first is needed.
 *
 * Invariant: what comes back is used as a picture only.
 */

interface Waiting {
  resolve(svg: string): void;
  reject(error: Error): void;
}

let frame: Promise<HTMLIFrameElement> | null = null;
const waiting = new Map<number, Waiting>();
let nextId = 1;

export async function drawDiagram(source: string, dark: boolean): Promise<string> {
  frame ??= openFrame();
  const target = (await frame).contentWindow;
  return new Promise((resolve, reject) => {
    const id = nextId++;
    waiting.set(id, { resolve, reject });
    target?.postMessage({ type: "hart:draw", id, source, dark }, "*");
  });
}

function openFrame(): Promise<HTMLIFrameElement> {
  const element = document.createElement("iframe");
  element.setAttribute("sandbox", "allow-scripts");
  element.setAttribute("aria-hidden", "true");
  element.tabIndex = -1;
  element.className = "diagram-frame";
  element.src = "/frame/diagram.html";
  return new Promise((resolve) => {
    addEventListener("message", (event: MessageEvent<{ type?: string; id?: number; svg?: string; error?: string }>) => {
      if (event.source !== element.contentWindow) return;
      if (event.data?.type === "hart:ready") resolve(element);
      if (event.data?.type !== "hart:drawn" || typeof event.data.id !== "number") return;
      const one = waiting.get(event.data.id);
      waiting.delete(event.data.id);
      if (typeof event.data.svg === "string") one?.resolve(event.data.svg);
      else one?.reject(new Error(event.data.error ?? "no diagram"));
    });
    document.body.append(element);
  });
}
