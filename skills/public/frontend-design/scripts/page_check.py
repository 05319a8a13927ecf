#!/usr/bin/env python3
"""Checks an HTML page for what keeps people out: contrast, names of controls, structure, motion, inline handlers.

Invariant: only what the file itself shows is judged, in light and dark; exit 0 without errors, 1 with, 2 when the file is unusable.
"""
import argparse
import json
import re
import sys
from html.parser import HTMLParser

sys.dont_write_bytecode = True
from colour import contrast, mend, over, parse, to_hex  # noqa: E402
from css import compiled, declarations, matches, resolve, rules_of  # noqa: E402

_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
_SILENT = {"script", "style", "head", "title", "template", "noscript", "option", "svg"}
_SIZES = {"h1": 32.0, "h2": 24.0, "h3": 18.72, "small": 13.3}


class Element:
    """A node of the page with what styling needs."""

    def __init__(self, tag, attributes, parent, line):
        self.tag, self.attributes, self.parent, self.line = tag, attributes, parent, line
        self.classes = (attributes.get("class") or "").split()
        self.children, self.own_text, self.text = [], "", ""


class Tree(HTMLParser):
    """Builds elements; all keeps them in the order of the file."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.root = Element("#root", {}, None, 1)
        self.here, self.all = self.root, []

    def handle_starttag(self, tag, attributes):
        if tag in ("li", "p", "td", "th", "tr", "option", "dt", "dd") and self.here.tag == tag:
            self.here = self.here.parent
        element = Element(tag, {name: value if value is not None else "" for name, value in attributes}, self.here, self.getpos()[0])
        self.here.children.append(element)
        self.all.append(element)
        if tag not in _VOID:
            self.here = element

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in _VOID:
            self.here = self.here.parent

    def handle_endtag(self, tag):
        holder = self.here
        while holder is not None and holder.tag != tag:
            holder = holder.parent
        if holder is not None and holder.parent is not None:
            self.here = holder.parent

    def handle_data(self, data):
        self.here.own_text += data
        holder = self.here
        while holder is not None:
            holder.text += data
            holder = holder.parent


def check_page(text):
    """[(level, line, rule, words)] for a page's text."""
    tree = Tree()
    tree.feed(text)
    found = []
    add = lambda level, element, rule, words: found.append((level, element.line if element else 1, rule, words))  # noqa: E731
    _document(tree, add)
    _names(tree, add)
    _handlers(tree, add)
    sheet = "\n".join(element.own_text for element in tree.all if element.tag == "style")
    _motion(tree, sheet, add)
    for scheme in ("light", "dark"):
        if scheme == "light" or re.search(r"prefers-color-scheme\s*:\s*dark", sheet):
            _contrast(tree, sheet, scheme, add)
    return sorted(set(found), key=lambda entry: (entry[1], entry[2], entry[3]))


def _document(tree, add):
    first = lambda tag: next((element for element in tree.all if element.tag == tag), None)  # noqa: E731
    page = first("html")
    if page is None or not page.attributes.get("lang", "").strip():
        add("error", page, "lang", "the page does not say its language: <html lang=\"…\">")
    if first("title") is None or not first("title").text.strip():
        add("error", first("head"), "title", "the page has no title")
    view = next((element for element in tree.all if element.tag == "meta" and element.attributes.get("name", "").lower() == "viewport"), None)
    if view is None:
        add("error", first("head"), "viewport", "no viewport: phones will show a shrunken desktop page")
    elif re.search(r"user-scalable\s*=\s*no|maximum-scale\s*=\s*1(\.0*)?\b", view.attributes.get("content", "")):
        add("error", view, "viewport", "zooming is forbidden")
    if first("main") is None and not any(element.attributes.get("role") == "main" for element in tree.all):
        add("warning", first("body"), "main", "no <main>: screen readers cannot jump to the content")
    headings = [element for element in tree.all if re.match(r"^h[1-6]$", element.tag)]
    if sum(element.tag == "h1" for element in headings) != 1:
        add("warning", headings[0] if headings else None, "h1", f"{sum(element.tag == 'h1' for element in headings)} <h1>; a page has one")
    level = 0
    for element in headings:
        if int(element.tag[1]) > level + 1 and level:
            add("warning", element, "heading-order", f"heading level jumps from {level} to {element.tag[1]}: {element.text.strip()[:40]!r}")
        level = int(element.tag[1])
        if not element.text.strip() and not _picture_name(element):
            add("error", element, "heading-empty", "an empty heading")
    ids = [element.attributes["id"] for element in tree.all if element.attributes.get("id")]
    for name in sorted({name for name in ids if ids.count(name) > 1}):
        add("error", next(element for element in tree.all if element.attributes.get("id") == name), "id", f"the id {name!r} occurs {ids.count(name)} times")
    for element in tree.all:
        for attribute in ("for", "aria-labelledby", "aria-describedby", "aria-controls"):
            for name in element.attributes.get(attribute, "").split():
                if name not in ids:
                    add("error", element, "reference", f"{attribute}={name!r} points to nothing")
        target = element.attributes.get("href", "")
        if element.tag == "a" and re.match(r"^#.+", target) and target[1:] not in ids and target != "#top":
            add("error", element, "reference", f"the link {target} has no target")


def _picture_name(element):
    return any(child.tag == "img" and child.attributes.get("alt", "").strip() or child.tag == "svg" and (child.attributes.get("aria-label") or any(inner.tag == "title" for inner in child.children)) or _picture_name(child) for child in element.children)


def _named(element):
    return bool(element.attributes.get("aria-label", "").strip() or element.attributes.get("aria-labelledby") or element.attributes.get("title", "").strip())


def _inside(element, tag):
    while element is not None:
        if element.tag == tag:
            return True
        element = element.parent
    return False


def _names(tree, add):
    labelled = {element.attributes["for"] for element in tree.all if element.tag == "label" and element.attributes.get("for")}
    for element in tree.all:
        hidden = element.attributes.get("aria-hidden") == "true" or "hidden" in element.attributes
        if hidden:
            continue
        if element.tag == "img" and "alt" not in element.attributes:
            add("error", element, "alt", f"picture without alt: {element.attributes.get('src', '')[:50]} (alt=\"\" if it only decorates)")
        elif element.tag == "img" and re.search(r"\.(png|jpe?g|gif|svg|webp)$", element.attributes["alt"], re.I):
            add("warning", element, "alt", f"alt is a file name: {element.attributes['alt']!r}")
        elif element.tag in ("input", "select", "textarea") and element.attributes.get("type", "text") not in ("hidden", "submit", "button", "reset", "image"):
            if not _named(element) and element.attributes.get("id") not in labelled and not _inside(element, "label"):
                hint = "; a placeholder is no label" if element.attributes.get("placeholder") else ""
                add("error", element, "label", f"<{element.tag}> without a label{hint}")
        elif element.tag == "button" and not element.text.strip() and not _named(element) and not _picture_name(element):
            add("error", element, "name", "a button without a name")
        elif element.tag == "a" and "href" in element.attributes and not element.text.strip() and not _named(element) and not _picture_name(element):
            add("error", element, "name", "a link without a name")
        elif element.tag == "a" and element.text.strip().lower() in ("here", "click here", "more", "link", "read more"):
            add("warning", element, "name", f"the link text {element.text.strip()!r} says nothing on its own")
        elif element.tag == "iframe" and not element.attributes.get("title"):
            add("error", element, "name", "an iframe without a title")
        elif element.tag == "table" and "<th" not in "".join("<" + inner.tag for inner in tree.all if _inside(inner, "table")):
            add("warning", element, "table", "a table without header cells")


def _handlers(tree, add):
    for element in tree.all:
        for name, value in element.attributes.items():
            if re.match(r"^on[a-z]+$", name):
                add("error", element, "inline-handler", f"{name} on <{element.tag}>: use addEventListener (inline handlers are blocked by a content security policy)")
            if name in ("href", "src", "action") and value.strip().lower().startswith("javascript:"):
                add("error", element, "inline-handler", f"{name}=\"javascript:…\" on <{element.tag}>")
        if element.tag in ("div", "span") and element.attributes.get("role") == "button" and "tabindex" not in element.attributes:
            add("error", element, "keyboard", "a <div> plays a button but cannot be reached by keyboard; use <button>")
        if re.match(r"^[1-9]", element.attributes.get("tabindex", "")):
            add("warning", element, "keyboard", "a positive tabindex disturbs the order of the keyboard")
        if element.tag in ("video", "audio") and "autoplay" in element.attributes and "muted" not in element.attributes:
            add("error", element, "motion", f"<{element.tag}> plays sound by itself")
        address = element.attributes.get("src") or (element.attributes.get("href", "") if element.tag == "link" else "")
        if element.tag in ("script", "link", "img", "iframe", "source") and re.match(r"^(https?:)?//", address) and element.attributes.get("rel") not in ("canonical", "alternate"):
            add("warning", element, "external", f"needs the network: {address[:60]}")


def _motion(tree, sheet, add):
    style = next((element for element in tree.all if element.tag == "style"), None)
    if re.search(r"(animation|transition)(-name|-duration|-property)?\s*:(?!\s*none)", sheet) and "prefers-reduced-motion" not in sheet:
        add("warning", style, "motion", "things move, but prefers-reduced-motion is not honoured")
    if re.search(r"outline\s*:\s*(none|0)\b", sheet) and not re.search(r":focus(-visible)?[^{]*\{[^}]*(outline\s*:(?!\s*(none|0)\b)|box-shadow|border)", sheet):
        add("error", style, "focus", "the focus outline is taken away and nothing replaces it")
    for match in re.finditer(r"(?<![\w-])(?:min-)?width\s*:\s*(\d{3,})px", sheet):
        if int(match.group(1)) > 480:
            add("warning", style, "responsive", f"a fixed width of {match.group(1)}px breaks narrow screens; use max-width")


def _contrast(tree, sheet, scheme, add):
    rules = []
    for selector, declared, order in rules_of(sheet, scheme):
        ready = compiled(selector)
        if ready:
            rules.append((ready[0], order, ready[1], declared))
    rules.sort(key=lambda rule: (rule[0], rule[1]))
    paper = (1.0, 1.0, 1.0, 1.0)
    start = {"color": (0.0, 0.0, 0.0, 1.0), "back": paper, "size": 16.0, "bold": False, "vars": {}, "shown": True}
    seen = set()
    for child in tree.root.children:
        _style(child, start, rules, scheme, add, seen)


def _style(element, above, rules, scheme, add, seen):
    declared = {}
    for _, _, chain, entries in rules:
        if matches(chain, element):
            declared.update(entries)
    declared.update(declarations(element.attributes.get("style", "")))
    variables = dict(above["vars"])
    variables.update({name: value for name, value in declared.items() if name.startswith("--")})
    now = dict(above, vars=variables)
    value = lambda name: resolve(declared[name], variables) if name in declared else None  # noqa: E731
    if element.tag in _SILENT or declared.get("display") == "none" or declared.get("visibility") == "hidden" or "hidden" in element.attributes or element.attributes.get("aria-hidden") == "true" or "clip" in declared or "clip-path" in declared:
        return
    shade = parse(value("color") or "") if "color" in declared and value("color") not in ("inherit", "currentcolor") else above["color"]
    if element.tag == "a" and "href" in element.attributes and "color" not in declared:
        shade = None
    now["color"] = shade
    for name in ("background", "background-color"):
        ground = value(name)
        if name in declared and ground is None:
            now["back"] = None
        elif ground is not None:
            if "url(" in ground or "gradient(" in ground:
                now["back"] = None
            else:
                tried = parse(ground) or next((colour for colour in (parse(part) for part in ground.split()) if colour), None)
                if tried is not None and tried[3] > 0:
                    now["back"] = over(tried, above["back"]) if above["back"] else (tried if tried[3] == 1 else None)
                elif ground not in ("none", "transparent", "inherit", "initial", "unset") and tried is None:
                    now["back"] = None
    now["size"] = _size(value("font-size"), above["size"], element.tag)
    weight = value("font-weight")
    now["bold"] = (weight in ("bold", "bolder") or bool(weight and weight.isdigit() and int(weight) >= 700)) if weight else above["bold"] or element.tag in ("h1", "h2", "h3", "h4", "h5", "h6", "strong", "b", "th")
    if declared.get("position") in ("absolute", "fixed"):
        now["back"] = now["back"] if now["back"] != above["back"] else None
    if "opacity" in declared and now["color"]:
        now["color"] = None
    words = element.own_text.strip()
    if words and now["color"] and now["back"] and "disabled" not in element.attributes:
        front = over(now["color"], now["back"])
        ratio = contrast(front, now["back"])
        wanted = 3.0 if now["size"] >= 24 or (now["bold"] and now["size"] >= 18.66) else 4.5
        key = (scheme, to_hex(front), to_hex(now["back"]), wanted)
        if ratio < wanted - 0.005 and key not in seen:
            seen.add(key)
            better = mend(front, now["back"], wanted)
            add("error", element, "contrast", f"{scheme}: {to_hex(front)} on {to_hex(now['back'])} is {ratio:.2f}:1, needs {wanted}:1 ({words[:30]!r})" + (f"; {to_hex(better)} would do" if better else ""))
    for child in element.children:
        _style(child, now, rules, scheme, add, seen)


def _size(text, above, tag):
    match = re.match(r"^([\d.]+)(px|rem|em|%|pt)$", (text or "").strip())
    if match:
        number = float(match.group(1))
        return {"px": number, "rem": number * 16, "em": number * above, "%": number * above / 100, "pt": number * 4 / 3}[match.group(2)]
    clamp = re.match(r"^clamp\(\s*([\d.]+)rem", (text or "").strip())
    if clamp:
        return float(clamp.group(1)) * 16
    return _SIZES.get(tag, above) if not text else above


def main(arguments=None):
    """Checks the files; the exit code."""
    parser = argparse.ArgumentParser(prog="page_check.py", description="Accessibility and robustness of HTML pages. Exit codes: 0 no errors, 1 errors, 2 unusable file.")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--strict", action="store_true", help="warnings count as errors")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    everything, errors, warnings = [], 0, 0
    for path in options.files:
        try:
            with open(path, encoding="utf-8-sig") as handle:
                text = handle.read()
        except (OSError, UnicodeDecodeError) as error:
            print(f"page_check: {path}: {getattr(error, 'strerror', None) or 'not UTF-8 text'}", file=sys.stderr)
            return 2
        if "<" not in text:
            print(f"page_check: {path} holds no HTML", file=sys.stderr)
            return 2
        for level, line, rule, words in check_page(text):
            errors, warnings = errors + (level == "error"), warnings + (level == "warning")
            everything.append({"file": path, "line": line, "level": level, "rule": rule, "words": words})
            if not options.json:
                print(f"{path}:{line}: {level}: [{rule}] {words}")
    print(json.dumps(everything, ensure_ascii=False, indent=1) if options.json else f"{errors} errors, {warnings} warnings")
    return 1 if errors or (options.strict and warnings) else 0


if __name__ == "__main__":
    sys.exit(main())
