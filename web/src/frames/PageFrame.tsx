/**
 * Shows a page somebody else wrote.
 *
 * Invariant: the frame has no origin of its own, its policy allows no network, and scripts run only when asked for.
 */
import { useEffect, useRef } from "react";

export function PageFrame({ html, scripts, title }: { html: string; scripts: boolean; title: string }) {
  const ref = useRef<HTMLIFrameElement>(null);
  useEffect(() => {
    const frame = ref.current;
    const onMessage = (event: MessageEvent<{ type?: string }>) => {
      if (event.source !== frame?.contentWindow || event.data?.type !== "hart:ready") return;
      frame?.contentWindow?.postMessage({ type: "hart:show", html }, "*");
    };
    addEventListener("message", onMessage);
    return () => removeEventListener("message", onMessage);
  }, [html, scripts]);
  return (
    <iframe
      // A new frame for every text: nothing of the one before is left in it.
      key={`${scripts}:${html.length}:${html.slice(0, 64)}`}
      ref={ref}
      className="page-frame"
      title={title}
      sandbox="allow-scripts"
      referrerPolicy="no-referrer"
      src={scripts ? "/frame/live.html" : "/frame/still.html"}
    />
  );
}
