/**
 * A diagram from its description.
 *
 * Invariant: it is drawn in a frame of its own and shown as a picture, in which nothing can run.
 */
import { useEffect, useState } from "react";
import { drawDiagram } from "../frames/diagrams";
import { isDark, useSettings } from "../settings/store";
import { useText } from "../text/language";
import { Button } from "../ui/Button";
import { PlainCode } from "./CodeBlock";

/** While it is being written, half a diagram is an error; wait until it rests. */
const REST_MS = 400;

export function Diagram({ source }: { source: string }) {
  const t = useText();
  const [picture, setPicture] = useState<Picture | null>(null);
  const { theme } = useSettings();
  const [showSource, setShowSource] = useState(false);
  useEffect(() => {
    let alive = true;
    let made: string | null = null;
    const timer = setTimeout(() => {
      drawDiagram(source, isDark()).then(
        (svg) => {
          if (!alive) return;
          made = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
          setPicture({ url: made, ...sizeOf(svg) });
        },
        () => alive && setPicture(null),
      );
    }, REST_MS);
    return () => {
      alive = false;
      clearTimeout(timer);
      if (made) URL.revokeObjectURL(made);
    };
  }, [source, theme]);
  if (picture === null || showSource) {
    return (
      <>
        <PlainCode code={source} language="mermaid" />
        {picture && (
          <Button small look="plain" onClick={() => setShowSource(false)}>
            {t.files.preview}
          </Button>
        )}
      </>
    );
  }
  return (
    <figure className="diagram">
      <img src={picture.url} width={picture.width} height={picture.height} alt={source} />
      <Button small look="plain" onClick={() => setShowSource(true)}>
        {t.files.source}
      </Button>
    </figure>
  );
}

interface Picture {
  url: string;
  width?: number;
  height?: number;
}

/** As large as it was drawn: the picture itself says no more than that it fills its place. */
export function sizeOf(svg: string): { width?: number; height?: number } {
  const [, width, height] = /viewBox="[\d.-]+[ ,]+[\d.-]+[ ,]+([\d.]+)[ ,]+([\d.]+)"/.exec(svg) ?? [];
  return width && height ? { width: Math.ceil(Number(width)), height: Math.ceil(Number(height)) } : {};
}
