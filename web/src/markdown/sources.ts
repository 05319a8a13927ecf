/**
 * The sources an answer names.
 *
 * Invariant: each address once, in the order of their first mention, and only addresses that may be followed.
 */
import { hostOf, safeLink } from "./address";

export interface Source {
  title: string;
  url: string;
}

/** Agents mark what they lean on as `[citation:Title](address)`. */
const CITATION = /\[citation:\s*([^\]]+)\]\(\s*<?([^)\s>]+)>?[^)]*\)/gi;

export function sourcesOf(text: string): Source[] {
  const found = new Map<string, Source>();
  for (const [, title, address] of text.matchAll(CITATION)) {
    const url = safeLink(address);
    if (url && !url.startsWith("#") && !found.has(url)) found.set(url, { title: title?.trim() || hostOf(url), url });
  }
  return [...found.values()];
}

/** What a citation shows in the text. */
export function withoutCitationMark(text: string): string {
  return text.replace(/^citation:\s*/i, "");
}
