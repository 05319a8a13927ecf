/**
 * Which addresses a text written by a model may lead to.
 *
 * Invariant: nothing but http, https, mailto and places in this conversation; never a script, never data.
 */

const ALLOWED = new Set(["http:", "https:", "mailto:"]);

/** The address if it may be followed, else `null`. */
export function safeLink(href: string | undefined): string | null {
  if (!href) return null;
  // Browsers ignore these inside a scheme, so `java\nscript:` would pass a naive look at the text.
  const cleaned = href.replace(/[\u0000-\u0020\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202f\ufeff]/g, "");
  if (cleaned.startsWith("#")) return cleaned;
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(cleaned);
  if (!scheme) return null;
  try {
    const url = new URL(cleaned);
    return ALLOWED.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/** Files of the thread, which the page shows itself. */
export function threadFile(href: string | undefined): string | null {
  const match = /^(?:sandbox:)?(\/mnt\/user-data\/[^?#\s]+)$/.exec(href ?? "");
  if (!match?.[1]) return null;
  let path: string;
  try {
    path = decodeURIComponent(match[1]);
  } catch {
    return null;
  }
  return path.split("/").includes("..") ? null : path;
}

/** What to show of an address beside its text, so that a text cannot pass itself off as another address. */
export function hostOf(href: string): string {
  try {
    const url = new URL(href);
    return url.protocol === "mailto:" ? url.pathname : url.host;
  } catch {
    return href;
  }
}
