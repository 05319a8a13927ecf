"""Draws the flow of a review: how many records came in, fell out, and stayed.

Invariant: every number in the drawing is one of the counts it was given.
"""
import re
from xml.sax.saxutils import escape

_INK, _SOFT, _LINE, _MAIN, _SIDE = "#1d2530", "#5a6675", "#8c99a8", "#eaf2fb", "#f6f7f9"


def _lines(text, size=44):
    out = [""]
    for word in text.split():
        if len(out[-1]) + len(word) + 1 > size and out[-1]:
            out.append("")
        out[-1] = f"{out[-1]} {word}".strip()
    return out


def _box(x, y, width, rows, colour):
    """(SVG, height) of a box; the first row is bold."""
    rows = [line for row in rows for line in _lines(re.sub(r"[\x00-\x1f]", " ", row), int(width / 7))]
    height = 20 + 19 * len(rows)
    out = [f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{colour}" stroke="{_LINE}"/>']
    out += [f'<text x="{x + 16}" y="{y + 25 + 19 * at}" fill="{_INK if at == 0 else _SOFT}"{" font-weight=" + chr(34) + "700" + chr(34) if at == 0 else ""}>{escape(line)}</text>' for at, line in enumerate(rows)]
    return "".join(out), height


def flow_svg(numbers):
    """The diagram as SVG."""
    sources = [f"{name}: {count}" for name, count in numbers["sources"].items()]
    stages = [
        ([f"Records identified (n = {numbers['identified']})"] + sources[:8], [f"Duplicates removed (n = {numbers['duplicates']})"]),
        ([f"Records screened (n = {numbers['screened']})"], [f"Excluded by title or abstract (n = {numbers['excluded']})"]),
        ([f"Full texts sought (n = {numbers['sought']})"], [f"Not available (n = {numbers['unavailable']})"]),
        ([f"Full texts assessed (n = {numbers['assessed']})"], [f"Excluded (n = {numbers['fulltext_excluded']})"] + [f"{reason}: {count}" for reason, count in list(numbers["reasons"].items())[:8]]),
        ([f"Studies included (n = {numbers['included']})"], None),
    ]
    parts, y, before = [], 24, None
    for main, side in stages:
        box, height = _box(24, y, 330, main, _MAIN if side else "#d7f0e3")
        parts.append(box)
        tall = height
        if side:
            other, other_height = _box(420, y, 340, side, _SIDE)
            middle = y + 22
            parts.append(other + f'<line x1="354" y1="{middle}" x2="414" y2="{middle}" stroke="{_LINE}" stroke-width="1.6" marker-end="url(#tip)"/>')
            tall = max(height, other_height)
        if before is not None:
            parts.append(f'<line x1="189" y1="{before}" x2="189" y2="{y - 6}" stroke="{_LINE}" stroke-width="1.6" marker-end="url(#tip)"/>')
        before, y = y + height, y + tall + 40
    tip = f'<defs><marker id="tip" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L10 5L0 10z" fill="{_LINE}"/></marker></defs>'
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 784 {y - 16}" width="784" height="{y - 16}" role="img" aria-label="Flow of records through the review" font-family="Arial, sans-serif" font-size="14">'
            f'{tip}<rect width="784" height="{y - 16}" fill="#ffffff"/>{"".join(parts)}</svg>\n')
