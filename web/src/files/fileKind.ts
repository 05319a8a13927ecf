/**
 * How a file can be shown, by its name.
 *
 * Invariant: what could run something (HTML, SVG) is only ever shown inside a sandboxed frame or as an inert picture.
 */

export type FileKind =
  "markdown" | "code" | "html" | "picture" | "pdf" | "table" | "audio" | "video" | "skill" | "other";

const BY_EXTENSION: Record<string, FileKind> = {
  md: "markdown",
  markdown: "markdown",
  html: "html",
  htm: "html",
  xhtml: "html",
  png: "picture",
  jpg: "picture",
  jpeg: "picture",
  gif: "picture",
  webp: "picture",
  avif: "picture",
  bmp: "picture",
  svg: "picture",
  pdf: "pdf",
  csv: "table",
  tsv: "table",
  mp3: "audio",
  wav: "audio",
  ogg: "audio",
  m4a: "audio",
  flac: "audio",
  mp4: "video",
  webm: "video",
  mov: "video",
  skill: "skill",
};

const PLAIN = (
  "txt log json jsonl yaml yml toml ini cfg conf env xml css scss less js mjs cjs ts tsx jsx py rs go java kt c h cc " +
  "cpp hpp cs rb php pl lua r jl swift scala sh bash zsh fish ps1 sql graphql proto dockerfile makefile diff patch " +
  "tex bib srt vtt"
).split(" ");

const MIME: Partial<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  avif: "image/avif",
  bmp: "image/bmp",
  svg: "image/svg+xml",
  pdf: "application/pdf",
  mp3: "audio/mpeg",
  wav: "audio/wav",
  ogg: "audio/ogg",
  m4a: "audio/mp4",
  flac: "audio/flac",
  mp4: "video/mp4",
  webm: "video/webm",
  mov: "video/quicktime",
};

export function extensionOf(path: string): string {
  const name = path.split("/").at(-1) ?? "";
  const dot = name.lastIndexOf(".");
  return (dot > 0 ? name.slice(dot + 1) : name).toLowerCase();
}

export function fileKindOf(path: string): FileKind {
  const extension = extensionOf(path);
  if (Object.hasOwn(BY_EXTENSION, extension)) return BY_EXTENSION[extension] ?? "other";
  return PLAIN.includes(extension) ? "code" : "other";
}

/** The type to show it as. The server's word does not count: it says what a file claims to be. */
export function mediaTypeOf(path: string): string {
  const extension = extensionOf(path);
  return (Object.hasOwn(MIME, extension) ? MIME[extension] : undefined) ?? "application/octet-stream";
}

export function isText(kind: FileKind): boolean {
  return kind === "markdown" || kind === "code" || kind === "html" || kind === "table";
}

/** Whether bytes are words: a file without an ending may be either. */
export function looksLikeText(bytes: Uint8Array): boolean {
  if (bytes.includes(0)) return false;
  try {
    // What was cut in the middle of a letter is still text.
    new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true });
    return true;
  } catch {
    return false;
  }
}

export function readableSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const units = ["KB", "MB", "GB"];
  let value = bytes;
  let unit = "B";
  for (const next of units) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${unit}`;
}
