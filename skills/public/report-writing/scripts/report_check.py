"""Finds what a reader would trip over in a Markdown report: structure, citations, links, placeholders, hard sentences.

Invariant: checking reads files only, never the network, and every finding has a line.
"""
import os
import re
from urllib.parse import unquote, urlparse

from markdown_blocks import blocks_of, front_matter, slug, text_of, walk

_SUMMARY = re.compile(r"^(\d+[.)]?\s*)?(executive )?(summary|abstract|key (findings|points|messages)|in brief|tl;?dr|zusammenfassung|résumé|resumen)\b", re.I)
_SOURCES = re.compile(r"^(\d+[.)]?\s*)?(references|sources|bibliography|works cited|quellen|literatur|références)\b", re.I)
_PLACEHOLDER = re.compile(r"\b(TODO|TBD|FIXME|XXX+)\b|lorem ipsum|\[citation needed\]|\[(insert|your|add) [^\]]*\]|\?\?\?", re.I)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?:\s+\"[^\"]*\")?\)")
_CITED = re.compile(r"\[((?:[A-Z]?\d+)(?:\s*[,;–-]\s*[A-Z]?\d+)*)\](?!\()")
_EMPTY_WORDS = re.compile(r"\b(very|really|basically|it is important to note|it should be noted|needless to say|in order to|as we all know|cutting-edge|game.changer)\b", re.I)


class Finding:
    """One thing to mend."""

    def __init__(self, level, line, words):
        self.level, self.line, self.words = level, line, words


def check(text, folder, need_citations=False):
    """All findings, in the order of lines."""
    _, start = front_matter(text)
    lines = text.split("\n")
    blocks = blocks_of(lines, start)
    found = []
    add = lambda level, line, words: found.append(Finding(level, line, words))  # noqa: E731
    every = list(walk(blocks))
    words_total = sum(len(text_of(block).split()) for block in every)
    _structure(blocks, words_total, front_matter(text)[0], add)
    _links(every, folder, add)
    _citations(blocks, every, need_citations, add)
    _language(every, add)
    for block in every:
        if block["kind"] == "code" and not block["closed"]:
            add("error", block["line"], "this code block is never closed")
        if block["kind"] == "table":
            for at, row in enumerate(block["rows"]):
                if len(row) != len(block["header"]):
                    add("error", block["line"] + 2 + at, f"this table row has {len(row)} cells, the header has {len(block['header'])}")
    return sorted(found, key=lambda finding: (finding.line, finding.level))


def _structure(blocks, words_total, meta, add):
    headings = [block for block in blocks if block["kind"] == "heading"]
    tops = [block for block in headings if block["level"] == 1]
    if not tops and not meta.get("title"):
        add("error", 1, "no title: start with '# Title' or a title in the front matter")
    for extra in tops[1:]:
        add("error", extra["line"], "a second '# ' heading; the title is the only one, sections start at '## '")
    level = 1
    for block in headings:
        if block["level"] > level + 1:
            add("error", block["line"], f"heading level jumps from {level} to {block['level']}: {block['text']!r}")
        level = block["level"]
        if not block["text"].strip():
            add("error", block["line"], "an empty heading")
    seen = {}
    for block in headings:
        name = slug(block["text"])
        if name in seen:
            add("warning", block["line"], f"heading {block['text']!r} stands in line {seen[name]} too; links to it reach only the first")
        seen.setdefault(name, block["line"])
    for at, block in enumerate(blocks):
        if block["kind"] == "heading":
            after = blocks[at + 1] if at + 1 < len(blocks) else None
            if after is None or (after["kind"] == "heading" and after["level"] <= block["level"]):
                add("error", block["line"], f"section {block['text']!r} is empty")
    if words_total > 700 and not any(_SUMMARY.match(block["text"]) for block in headings[:4]):
        add("warning", 1, f"{words_total} words without a summary near the top; readers decide there")


def _links(every, folder, add):
    anchors, counts = set(), {}
    for block in every:
        if block["kind"] == "heading":
            name = slug(block["text"])
            counts[name] = counts.get(name, -1) + 1
            anchors.add(name if not counts[name] else f"{name}-{counts[name]}")
    for block in every:
        text = re.sub(r"`[^`]*`", "", text_of(block))
        for match in _LINK.finditer(text):
            line = block["line"] + text[:match.start()].count("\n")
            picture, words, address = match.group(1), match.group(2), match.group(3)
            if picture and not words.strip():
                add("warning", line, f"picture {address} has no description; write ![what it shows](…)")
            if not picture and words.strip().lower() in ("here", "link", "click here", "this"):
                add("warning", line, f"the link text {words!r} says nothing; name what is behind it")
            _address(address, folder, anchors, line, add)


def _address(address, folder, anchors, line, add):
    if not address:
        return add("error", line, "a link without address")
    parsed = urlparse(address)
    if parsed.scheme in ("http", "https"):
        if not parsed.netloc or "." not in parsed.netloc and not parsed.netloc.startswith("localhost"):
            add("error", line, f"{address} is not a complete address")
    elif parsed.scheme in ("mailto", "data"):
        return None
    elif parsed.scheme and len(parsed.scheme) > 1:
        add("warning", line, f"{address}: unusual kind of link ({parsed.scheme})")
    elif address.startswith("#"):
        if unquote(address[1:]).lower() not in anchors:
            add("error", line, f"no heading for the link {address}")
    else:
        path = unquote(address.split("#")[0])
        if not os.path.exists(os.path.join(folder, path)):
            add("error", line, f"{path} does not exist (looked in {folder or '.'})")
    return None


def _citations(blocks, every, need_citations, add):
    defined = {block["name"]: block["line"] for block in every if block["kind"] == "footnote"}
    used = {}
    for block in every:
        text = re.sub(r"`[^`]*`", "", text_of(block))
        for match in re.finditer(r"\[\^([^\]\s]+)\]", text):
            used.setdefault(match.group(1), block["line"])
    for name, line in used.items():
        if name not in defined:
            add("error", line, f"footnote [^{name}] is used but not written")
    for name, line in defined.items():
        if name not in used:
            add("warning", line, f"footnote [^{name}] is written but never used")
    section, listed, cited = "", {}, {}
    for block in blocks:
        if block["kind"] == "heading":
            section = "sources" if _SOURCES.match(block["text"]) else ("" if block["level"] <= 2 else section)
        elif section == "sources":
            _collect_sources(block, listed)
        else:
            for inner in walk([block]):
                text = re.sub(r"`[^`]*`", "", text_of(inner))
                for match in _CITED.finditer(text):
                    for name in _expand(match.group(1)):
                        cited.setdefault(name, inner["line"] + text[:match.start()].count("\n"))
    if listed:
        for name, line in cited.items():
            if name not in listed:
                add("error", line, f"citation [{name}] has no entry among the sources")
        for name, line in listed.items():
            if name not in cited:
                add("warning", line, f"source [{name}] is never cited")
    elif cited:
        add("error", min(cited.values()), f"{len(cited)} citations like [{next(iter(cited))}], but no section 'Sources' or 'References'")
    if need_citations:
        _uncited(blocks, add)


def _collect_sources(block, listed):
    if block["kind"] == "list" and block["ordered"]:
        for at, item in enumerate(block["items"]):
            first = text_of(item[0]) if item else ""
            own = re.match(r"^\[([A-Z]?\d+)\]", first)
            listed[own.group(1) if own else str(block["start"] + at)] = item[0]["line"] if item else block["line"]
    else:
        for inner in walk([block]):
            for at, line in enumerate(text_of(inner).split("\n")):
                own = re.match(r"^\W*\[([A-Z]?\d+)\]", line)
                if own:
                    listed[own.group(1)] = inner["line"] + at


def _expand(text):
    names = []
    for part in re.split(r"\s*[,;]\s*", text):
        ends = re.match(r"^([A-Z]?)(\d+)\s*[–-]\s*[A-Z]?(\d+)$", part)
        if ends and int(ends.group(3)) - int(ends.group(2)) < 100:
            names += [f"{ends.group(1)}{at}" for at in range(int(ends.group(2)), int(ends.group(3)) + 1)]
        else:
            names.append(part)
    return names


def _uncited(blocks, add):
    skip = False
    for block in blocks:
        if block["kind"] == "heading":
            skip = bool(_SOURCES.match(block["text"]) or _SUMMARY.match(block["text"])) if block["level"] <= 2 else skip
        elif not skip and block["kind"] in ("paragraph", "list", "quote"):
            for inner in walk([block]):
                text = re.sub(r"`[^`]*`", "", text_of(inner))
                if inner["kind"] == "paragraph" and re.search(r"\d+([.,]\d+)?\s?(%|percent|million|billion|bn)|[$€£]\s?\d", text) and not (_CITED.search(text) or "[^" in text or _LINK.search(text)):
                    add("warning", inner["line"], "figures without a citation: " + " ".join(text.split())[:70] + "…")


def _language(every, add):
    for block in every:
        text = re.sub(r"`[^`]*`", "", text_of(block))
        for match in _PLACEHOLDER.finditer(text):
            add("error", block["line"] + text[:match.start()].count("\n"), f"a placeholder is left: {match.group(0)!r}")
        if block["kind"] != "paragraph":
            continue
        words = len(text.split())
        if words > 160:
            add("warning", block["line"], f"a paragraph of {words} words; split it where the thought turns")
        plain = re.sub(r"\[\^?[^\]]*\](\([^)]*\))?", "", text).replace("\n", " ")
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-ZÄÖÜ])", plain):
            if len(sentence.split()) > 42:
                add("warning", block["line"], f"a sentence of {len(sentence.split())} words: {' '.join(sentence.split()[:8])}…")
        for match in list(_EMPTY_WORDS.finditer(text))[:1]:
            add("hint", block["line"], f"{match.group(0)!r} can probably go")
