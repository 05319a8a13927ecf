/**
 * Runs inside the frame for diagrams: takes descriptions, gives back pictures.
 *
 * Invariant: the description is foreign and the library is large, so both are here, where there is nothing to reach.
 */
import mermaid from "mermaid";

interface Draw {
  type: "hart:draw";
  id: number;
  source: string;
  dark: boolean;
}

let turn = Promise.resolve();

addEventListener("message", (event: MessageEvent<Partial<Draw>>) => {
  const { data } = event;
  if (event.source !== parent || data?.type !== "hart:draw") return;
  turn = turn.then(() => draw(Number(data.id), String(data.source ?? ""), data.dark === true));
});

async function draw(id: number, source: string, dark: boolean): Promise<void> {
  try {
    mermaid.initialize({
      startOnLoad: false,
      securityLevel: "strict",
      theme: dark ? "dark" : "neutral",
      htmlLabels: false,
      flowchart: { htmlLabels: false },
    });
    const { svg } = await mermaid.render(`diagram-${id}`, source);
    parent.postMessage({ type: "hart:drawn", id, svg }, "*");
  } catch (error) {
    parent.postMessage({ type: "hart:drawn", id, error: String(error) }, "*");
  }
}

parent.postMessage({ type: "hart:ready" }, "*");
