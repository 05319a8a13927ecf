/**
 * Formulas as MathML elements.
 *
 * Invariant: only elements and attributes named here are made; whatever else a formula contains is dropped.
 */
import { createElement, type ReactNode } from "react";

const ELEMENTS = new Set(
  (
    "math semantics mrow mi mn mo ms mtext mspace msup msub msubsup mfrac msqrt mroot mover munder munderover mtable " +
    "mtr mtd mstyle mpadded mphantom menclose merror mmultiscripts mprescripts none"
  ).split(" "),
);

const ATTRIBUTES: Record<string, string> = {
  display: "display",
  mathvariant: "mathvariant",
  stretchy: "stretchy",
  fence: "fence",
  separator: "separator",
  lspace: "lspace",
  rspace: "rspace",
  minsize: "minsize",
  maxsize: "maxsize",
  accent: "accent",
  accentunder: "accentunder",
  movablelimits: "movablelimits",
  linethickness: "linethickness",
  columnalign: "columnalign",
  rowspacing: "rowspacing",
  columnspacing: "columnspacing",
  columnlines: "columnlines",
  rowlines: "rowlines",
  scriptlevel: "scriptlevel",
  displaystyle: "displaystyle",
  width: "width",
  height: "height",
  depth: "depth",
  voffset: "voffset",
  notation: "notation",
  form: "form",
};

export function mathmlElements(markup: string): ReactNode {
  // Parsed without being shown: nothing in it loads or runs.
  const parsed = new DOMParser().parseFromString(markup, "text/html");
  const math = parsed.querySelector("math");
  return math ? convert(math, 0) : null;
}

function convert(node: Node, key: number): ReactNode {
  if (node.nodeType === 3) return node.textContent;
  if (!(node instanceof Element)) return null;
  const name = node.localName;
  // The source beside the formula, for those who copy it; a screen reader would read it twice.
  if (name === "annotation" || !ELEMENTS.has(name)) return null;
  const attributes: Record<string, unknown> = { key };
  for (const attribute of node.attributes) {
    const known = Object.hasOwn(ATTRIBUTES, attribute.name) ? ATTRIBUTES[attribute.name] : undefined;
    if (known) attributes[known] = attribute.value;
  }
  return createElement(name, attributes, ...[...node.childNodes].map(convert));
}
