/**
 * A diagram from its description.
 *
 * Invariant: it is drawn in a frame of its own and shown as a picture, in which nothing can run.
 */
import { useEffect, useState } from "react";
import { drawDiagram } from "../frames/diagrams";
import { isDark } from "../settings/store";
import { useText } from "../text/language";
import { Button } from "../ui/Button";
import { PlainCode } from "./CodeBlock";

/** While it is being written, half a diagram is an error; wait until it rests. */
const REST_MS = 400;

export function Diagram({ source }: { source: string }) {
  const t = useText();
  const [url, setUrl] = useState<string | null>(null);
  const [showSource, setShowSource] = useState(false);
  useEffect(() => {
    let alive = true;
    let made: string | null = null;
    const timer = setTimeout(() => {
      drawDiagram(source, isDark()).then(
        (svg) => {
          if (!alive) return;
          made = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
          setUrl(made);
        },
        () => alive && setUrl(null),
      );
    }, REST_MS);
    return () => {
      alive = false;
      clearTimeout(timer);
      if (made) URL.revokeObjectURL(made);
    };
  }, [source]);
  if (url === null || showSource) {
    return (
      <>
        <PlainCode code={source} language="mermaid" />
        {url && (
          <Button small look="plain" onClick={() => setShowSource(false)}>
            {t.files.preview}
          </Button>
        )}
      </>
    );
  }
  return (
    <figure className="diagram">
      <img src={url} alt={source} />
      <Button small look="plain" onClick={() => setShowSource(true)}>
        {t.files.source}
      </Button>
    </figure>
  );
}
