"""Parses a Markdown outline into a deck: slides, columns, blocks.

Invariant: every problem found is a Problem with the line it stands on; parsing never stops at the first one.
"""
import csv
import io
import os
import re

THEMES = ("light", "dark", "warm")
CHARTS = ("bar", "column", "line")
META = ("title", "subtitle", "author", "date", "theme", "accent", "footer", "lang")


class Problem:
    """Something wrong (or risky) in the outline; level is 'error' or 'warning'."""

    def __init__(self, level, line, words):
        self.level, self.line, self.words = level, line, words


class Slide:
    """One slide; kind is 'title', 'section' or 'content'."""

    def __init__(self, kind, title, line):
        self.kind, self.title, self.line = kind, title, line
        self.columns, self.notes = [[]], []

    def blocks(self):
        return [block for column in self.columns for block in column]


class Deck:
    """The metadata, the slides and what is wrong with them."""

    def __init__(self, folder):
        self.meta, self.slides, self.problems, self.folder = {}, [], [], folder

    def complain(self, level, line, words):
        self.problems.append(Problem(level, line, words))


def read_deck(path):
    """The deck of a file; OSError and UnicodeDecodeError pass through."""
    with open(path, encoding="utf-8-sig") as handle:
        return parse(handle.read(), os.path.dirname(os.path.abspath(path)))


def parse(text, folder="."):
    """The deck of an outline's text; pictures are looked for relative to folder."""
    deck = Deck(folder)
    # XML has no room for control characters, wherever they were copied from.
    text = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "", text)
    lines = text.replace("\r\n", "\n").split("\n")
    at = _front_matter(deck, lines)
    if deck.meta.get("title"):
        deck.slides.append(Slide("title", deck.meta["title"], 1))
    slide, in_notes = None, False
    while at < len(lines):
        line, number = lines[at], at + 1
        heading = re.match(r"^(#{1,2})\s+(.*?)\s*#*\s*$", line)
        if heading:
            slide = Slide("section" if len(heading.group(1)) == 1 else "content", heading.group(2), number)
            deck.slides.append(slide)
            in_notes = False
            at += 1
            continue
        if not line.strip():
            if in_notes and slide.notes and slide.notes[-1]:
                slide.notes.append("")
            at += 1
            continue
        if slide is None:
            deck.complain("error", number, "text before the first slide; start slides with '## Title' (or a section with '# Title')")
            at += 1
            continue
        if re.match(r"^notes?:", line, re.I):
            in_notes = True
            rest = line.split(":", 1)[1].strip()
            slide.notes.extend([rest] if rest else [])
            at += 1
        elif in_notes:
            slide.notes.append(line.strip())
            at += 1
        elif line.strip() == "+++":
            slide.columns.append([])
            at += 1
        else:
            at = _block(deck, slide, lines, at)
    for slide in deck.slides:
        while slide.notes and not slide.notes[-1]:
            slide.notes.pop()
    if not deck.slides:
        deck.complain("error", 1, "there is no slide; start one with '## Title'")
    return deck


def _front_matter(deck, lines):
    if not lines or lines[0].strip() != "---":
        return 0
    for at in range(1, len(lines)):
        line = lines[at]
        if line.strip() == "---":
            break
        name, colon, value = line.partition(":")
        name, value = name.strip().lower(), value.strip().strip("\"'")
        if not line.strip():
            continue
        if not colon or name not in META:
            deck.complain("warning", at + 1, f"unknown key {name!r}; known are {', '.join(META)}")
        else:
            deck.meta[name] = value
    else:
        deck.complain("error", 1, "the front matter is not closed with '---'")
        return len(lines)
    if deck.meta.get("theme", "light") not in THEMES:
        deck.complain("error", 1, f"unknown theme {deck.meta['theme']!r}; themes are {', '.join(THEMES)}")
        deck.meta["theme"] = "light"
    if not re.match(r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$", deck.meta.get("lang", "en-US")):
        deck.complain("error", 1, f"lang {deck.meta['lang']!r} is not a language tag like en-US")
        del deck.meta["lang"]
    accent = deck.meta.get("accent")
    if accent and not re.match(r"^#[0-9a-fA-F]{6}$", accent):
        deck.complain("error", 1, f"accent {accent!r} is not a colour like #0B6E99")
        del deck.meta["accent"]
    return at + 1


def _block(deck, slide, lines, at):
    line, column = lines[at], slide.columns[-1]
    fence = re.match(r"^```\s*(.*)$", line)
    if fence:
        return _fenced(deck, column, lines, at, fence.group(1).strip())
    if line.lstrip().startswith("|"):
        return _table(deck, column, lines, at)
    item = re.match(r"^(\s*)([-*+]|\d+[.)])\s+(.*)$", line)
    if item:
        level = min(len(item.group(1).expandtabs(2)) // 2, 2)
        entry = {"level": level, "ordered": item.group(2)[0].isdigit(), "runs": runs(item.group(3))}
        if not column or column[-1]["kind"] != "list":
            column.append({"kind": "list", "items": [], "line": at + 1})
        column[-1]["items"].append(entry)
        return at + 1
    picture = re.match(r"^!\[([^\]]*)\]\(([^)\s]+)\)\s*$", line)
    if picture:
        block = {"kind": "image", "alt": picture.group(1), "path": picture.group(2), "line": at + 1}
        _look_at_picture(deck, block)
        column.append(block)
        return at + 1
    if line.startswith(">"):
        column.append({"kind": "quote", "lines": [], "line": at + 1})
        while at < len(lines) and lines[at].startswith(">"):
            column[-1]["lines"].append(lines[at][1:].strip())
            at += 1
        return at
    if line.startswith("! "):
        figure, _, words = line[2:].partition("|")
        column.append({"kind": "figure", "figure": figure.strip(), "runs": runs(words.strip()), "line": at + 1})
        return at + 1
    if column and column[-1]["kind"] == "list" and line.startswith("  "):
        column[-1]["items"][-1]["runs"] += runs(" " + line.strip())
    elif column and column[-1]["kind"] == "text" and lines[at - 1].strip():
        column[-1]["runs"] += runs(" " + line.strip())
    else:
        column.append({"kind": "text", "runs": runs(line.strip()), "line": at + 1})
    return at + 1


def _fenced(deck, column, lines, at, words):
    start, body = at, []
    at += 1
    while at < len(lines) and not lines[at].startswith("```"):
        body.append(lines[at])
        at += 1
    if at >= len(lines):
        deck.complain("error", start + 1, "this ``` block is not closed")
    if words.split(" ")[0] == "chart":
        column.append(_chart(deck, body, start, words.split()[1:]))
    else:
        column.append({"kind": "code", "language": words, "lines": body, "line": start + 1})
    return at + 1


def _chart(deck, body, start, words):
    kind = words[0] if words else "column"
    if kind not in CHARTS:
        deck.complain("error", start + 1, f"unknown chart {kind!r}; charts are {', '.join(CHARTS)}")
        kind = "column"
    rows = [row for row in csv.reader(io.StringIO("\n".join(body)), skipinitialspace=True) if any(cell.strip() for cell in row)]
    chart = {"kind": "chart", "chart": kind, "unit": words[1] if len(words) > 1 else "", "categories": [], "series": [], "line": start + 1}
    if len(rows) < 2 or len(rows[0]) < 2:
        deck.complain("error", start + 1, "a chart needs a header line (label,series…) and at least one line of values")
        return chart
    chart["series"] = [(name.strip(), []) for name in rows[0][1:]]
    for offset, row in enumerate(rows[1:], start=2):
        chart["categories"].append(row[0].strip())
        for (name, values), cell in zip(chart["series"], row[1:] + [""] * len(rows[0])):
            try:
                values.append(float(cell.replace(",", "")) if cell.strip() else None)
            except ValueError:
                deck.complain("error", start + offset, f"chart value {cell.strip()!r} of {name!r} is not a number")
                values.append(None)
    return chart


def _table(deck, column, lines, at):
    start, rows, align = at, [], []
    while at < len(lines) and lines[at].lstrip().startswith("|"):
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", lines[at].strip().strip("|"))]
        if all(re.match(r"^:?-{2,}:?$", cell) for cell in cells):
            align = ["right" if cell.endswith(":") and not cell.startswith(":") else "center" if cell.startswith(":") and cell.endswith(":") else "left" for cell in cells]
        else:
            rows.append(cells)
        at += 1
    if not rows:
        deck.complain("error", start + 1, "this table has no rows")
        return at
    width = max(len(row) for row in rows)
    if any(len(row) != width for row in rows):
        deck.complain("warning", start + 1, "the table's rows differ in their number of cells; empty cells were added")
    rows = [[runs(cell) for cell in row] + [[]] * (width - len(row)) for row in rows]
    column.append({"kind": "table", "rows": rows, "align": (align + ["left"] * width)[:width], "line": start + 1})
    return at


def runs(text):
    """Inline Markdown as a list of {text, bold, italic, code, link}."""
    text = re.sub(r"(?<=\d) (?=[%€$£¥°])", "\u00a0", text)
    found, at = [], 0
    pattern = re.compile(r"\*\*(?P<bold>.+?)\*\*|(?<!\w)[*_](?P<italic>[^*_\s][^*_]*)[*_](?!\w)|`(?P<code>[^`]+)`|\[(?P<text>[^\]]+)\]\((?P<link>[^)\s]+)\)")
    for match in pattern.finditer(text):
        if match.start() > at:
            found.append({"text": text[at:match.start()]})
        if match.group("link"):
            found.append({"text": match.group("text"), "link": match.group("link")})
        else:
            style = next(name for name in ("bold", "italic", "code") if match.group(name) is not None)
            found.append({"text": match.group(style), style: True})
        at = match.end()
    if at < len(text):
        found.append({"text": text[at:]})
    return found


def plain(pieces):
    """The text of runs without their styles."""
    return "".join(piece["text"] for piece in pieces)


def _look_at_picture(deck, block):
    """Reads format and size from the file's own bytes, so that a wrong extension does no harm."""
    path = block["path"] if os.path.isabs(block["path"]) else os.path.join(deck.folder, block["path"])
    block["file"], block["format"], block["size"] = None, None, (4, 3)
    if re.match(r"^[a-z]+://", block["path"]):
        return deck.complain("error", block["line"], f"picture {block['path']}: only local files can be put into a deck; download it first")
    try:
        with open(path, "rb") as handle:
            data = handle.read()
    except OSError as error:
        return deck.complain("error", block["line"], f"picture {block['path']}: {error.strerror}")
    block["file"] = path
    if not block["alt"]:
        deck.complain("warning", block["line"], f"picture {block['path']} has no description; write ![what it shows](…)")
    if data[:8] == b"\x89PNG\r\n\x1a\n":
        block["format"], block["size"] = "png", (int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big"))
    elif data[:6] in (b"GIF87a", b"GIF89a"):
        block["format"], block["size"] = "gif", (int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little"))
    elif data[:2] == b"\xff\xd8":
        block["format"], block["size"] = "jpeg", _jpeg_size(data)
    elif b"<svg" in data[:2000]:
        block["format"] = "svg"
        box = re.search(rb'viewBox="[\d.\-]+[ ,]+[\d.\-]+[ ,]+([\d.]+)[ ,]+([\d.]+)"', data)
        if box:
            block["size"] = (float(box.group(1)), float(box.group(2)))
    else:
        block["file"] = None
        deck.complain("error", block["line"], f"picture {block['path']} is neither PNG, JPEG, GIF nor SVG")
    if not all(block["size"]):
        block["size"] = (4, 3)


def _jpeg_size(data):
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        marker, length = data[at + 1], int.from_bytes(data[at + 2:at + 4], "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return int.from_bytes(data[at + 7:at + 9], "big"), int.from_bytes(data[at + 5:at + 7], "big")
        at += 2 + length
    return 4, 3
