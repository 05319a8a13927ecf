"""Parses the Markdown that reports use into blocks with line numbers, for checking and for rendering.

Invariant: every line of the input belongs to exactly one block, and no input makes the parser fail.
"""
import re

_ITEM = re.compile(r"^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$")
_FENCE = re.compile(r"^\s{0,3}(```+|~~~+)\s*(.*)$")
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*\s*$")
_RULE = re.compile(r"^\s{0,3}([-*_])(\s*\1){2,}\s*$")
_FOOTNOTE = re.compile(r"^\[\^([^\]\s]+)\]:\s*(.*)$")
_TABLE_RULE = re.compile(r"^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")


def slug(text):
    """The anchor of a heading, as common Markdown hosts make it."""
    text = re.sub(r"[*_`]|\[([^\]]*)\]\([^)]*\)", lambda match: match.group(1) or "", text).strip().lower()
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", text))


def front_matter(text):
    """({key: value}, first line of the body) of a document."""
    lines = text.split("\n")
    meta = {}
    if lines and lines[0].strip() == "---":
        for at in range(1, len(lines)):
            if lines[at].strip() in ("---", "..."):
                return meta, at + 1
            name, colon, value = lines[at].partition(":")
            if colon:
                meta[name.strip().lower()] = value.strip().strip("\"'")
    return {}, 0


def cells_of(line):
    """The cells of a table line."""
    bare = line.strip()
    bare = bare[1:] if bare.startswith("|") else bare
    bare = bare[:-1] if bare.endswith("|") and not bare.endswith("\\|") else bare
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", bare)]


def blocks_of(lines, start=0, offset=0):
    """The blocks of lines from start; offset is added to line numbers."""
    blocks, at = [], start
    while at < len(lines):
        line = lines[at]
        number = at + 1 + offset
        fence, heading, note = _FENCE.match(line), _HEADING.match(line), _FOOTNOTE.match(line)
        if not line.strip():
            at += 1
        elif fence:
            body, end = [], at + 1
            while end < len(lines) and not re.match(rf"^\s{{0,3}}{fence.group(1)[0]}{{{len(fence.group(1))},}}\s*$", lines[end]):
                body.append(lines[end])
                end += 1
            blocks.append({"kind": "code", "language": fence.group(2).strip(), "lines": body, "line": number, "closed": end < len(lines)})
            at = end + 1
        elif heading:
            blocks.append({"kind": "heading", "level": len(heading.group(1)), "text": heading.group(2), "line": number})
            at += 1
        elif _RULE.match(line):
            blocks.append({"kind": "rule", "line": number})
            at += 1
        elif note:
            body = [note.group(2)]
            at += 1
            while at < len(lines) and lines[at].startswith(("  ", "\t")) and lines[at].strip():
                body.append(lines[at].strip())
                at += 1
            blocks.append({"kind": "footnote", "name": note.group(1), "text": " ".join(body), "line": number})
        elif line.lstrip().startswith(">"):
            body = []
            while at < len(lines) and lines[at].lstrip().startswith(">"):
                body.append(re.sub(r"^\s*> ?", "", lines[at]))
                at += 1
            blocks.append({"kind": "quote", "blocks": blocks_of(body, 0, number - 1), "line": number})
        elif "|" in line and at + 1 < len(lines) and "-" in lines[at + 1] and _TABLE_RULE.match(lines[at + 1]):
            at = _table(lines, at, blocks, number)
        elif _ITEM.match(line):
            at = _list(lines, at, blocks, offset)
        else:
            body = []
            while at < len(lines) and lines[at].strip() and not _starts_other(lines, at, bool(body)):
                body.append(lines[at])
                at += 1
            blocks.append({"kind": "paragraph", "lines": body, "line": number})
    return blocks


def _starts_other(lines, at, inside):
    line = lines[at]
    return inside and bool(_FENCE.match(line) or _HEADING.match(line) or _FOOTNOTE.match(line) or _RULE.match(line)
                           or re.match(r"^\s*([-*+]|1[.)])\s+\S", line) or line.lstrip().startswith(">"))


def _table(lines, at, blocks, number):
    header = cells_of(lines[at])
    align = ["center" if cell.startswith(":") and cell.endswith(":") else "right" if cell.endswith(":") else "left" for cell in cells_of(lines[at + 1])]
    rows, at = [], at + 2
    while at < len(lines) and "|" in lines[at] and lines[at].strip():
        rows.append(cells_of(lines[at]))
        at += 1
    blocks.append({"kind": "table", "header": header, "align": (align + ["left"] * len(header))[:len(header)], "rows": rows, "line": number})
    return at


def _list(lines, at, blocks, offset):
    first = _ITEM.match(lines[at])
    base, ordered = len(first.group(1).expandtabs(4)), first.group(2)[0].isdigit()
    block = {"kind": "list", "ordered": ordered, "start": int(first.group(2)[:-1]) if ordered else 1, "items": [], "line": at + 1 + offset}
    while at < len(lines):
        match = _ITEM.match(lines[at])
        if not match or len(match.group(1).expandtabs(4)) != base or match.group(2)[0].isdigit() != ordered:
            break
        indent = base + len(match.group(2)) + 1
        body, begin = [match.group(3)], at
        at += 1
        while at < len(lines):
            line = lines[at]
            depth = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
            if not line.strip():
                follow = next((later for later in lines[at + 1:at + 3] if later.strip()), "")
                if len(follow) - len(follow.lstrip()) > base:
                    body.append("")
                    at += 1
                    continue
                break
            if depth > base:
                body.append(line.expandtabs(4)[min(depth, indent):])
            elif _ITEM.match(line) or _HEADING.match(line) or _FENCE.match(line):
                break
            elif body[-1]:
                body.append(line)
            else:
                break
            at += 1
        block["items"].append(blocks_of(body, 0, begin + offset))
        if at < len(lines) and not lines[at].strip():
            follow = at + 1
            again = _ITEM.match(lines[follow]) if follow < len(lines) else None
            if again and len(again.group(1).expandtabs(4)) == base and again.group(2)[0].isdigit() == ordered:
                at = follow
            else:
                break
    blocks.append(block)
    return at


def walk(blocks):
    """All blocks, inner ones after their holders."""
    for block in blocks:
        yield block
        if block["kind"] == "quote":
            yield from walk(block["blocks"])
        elif block["kind"] == "list":
            for item in block["items"]:
                yield from walk(item)


def text_of(block):
    """The running text of a block, without code."""
    if block["kind"] == "paragraph":
        return "\n".join(block["lines"])
    if block["kind"] in ("heading", "footnote"):
        return block["text"]
    if block["kind"] == "table":
        return "\n".join(" | ".join(row) for row in [block["header"]] + block["rows"])
    return ""
