"""Decides where the blocks of a slide stand and how large their text is, for both outputs.

Invariant: boxes lie inside the slide's body and do not overlap; what does not fit even at the smallest size is told.
"""
import unicodedata

from outline import plain

WIDTH, HEIGHT = 13.333, 7.5
LEFT, RIGHT, TOP, BOTTOM = 0.75, 12.583, 1.75, 6.7
SIZES = (24, 22, 20, 18, 16, 14)
QUOTE, FIGURE = 30, 80
PALETTES = {
    "light": {"paper": "FFFFFF", "ink": "1B2330", "soft": "5B6675", "tint": "EEF2F6", "accent": "0B5CAD", "cover": "12233B", "cover_ink": "FFFFFF", "cover_soft": "C3D0E0"},
    "dark": {"paper": "14181F", "ink": "F2F5F8", "soft": "A7B2C0", "tint": "232A34", "accent": "5CB3F0", "cover": "0B0E13", "cover_ink": "FFFFFF", "cover_soft": "A7B2C0"},
    "warm": {"paper": "FBF7F0", "ink": "2B2320", "soft": "6E6058", "tint": "F0E6D8", "accent": "A8431F", "cover": "4A1F12", "cover_ink": "FFF8EE", "cover_soft": "E6CDBB"},
}
SERIES = {"light": ("0B5CAD", "E69F00", "009E73", "D55E00", "CC79A7", "56B4E9"),
          "dark": ("5CB3F0", "E69F00", "2BC48A", "F0795A", "E39CC4", "B4BDC6"),
          "warm": ("A8431F", "0072B2", "E69F00", "009E73", "CC79A7", "5B5B5B")}


def palette(deck):
    """The colours of the deck's theme, with its own accent if it has one."""
    colours = dict(PALETTES[deck.meta.get("theme", "light")])
    if deck.meta.get("accent"):
        colours["accent"] = deck.meta["accent"].lstrip("#").upper()
    return colours


def series_colours(deck):
    """Colours of chart series; the accent is the first."""
    return (palette(deck)["accent"],) + SERIES[deck.meta.get("theme", "light")][1:]


def on(colour):
    """Black or white, whichever reads better on the colour."""
    parts = [int(colour[at:at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "FFFFFF" if 1.05 / (light + 0.05) >= (light + 0.05) / 0.05 else "14181F"


def width_of(text, points):
    """About how many inches a text takes in a sans-serif face."""
    ems = 0.0
    for char in text:
        if unicodedata.east_asian_width(char) in "WF":
            ems += 1.0
        elif char in "iljtfrI.,:;'|!()[] ":
            ems += 0.33
        elif char in "mwMW%@":
            ems += 0.9
        else:
            ems += 0.68 if char.isupper() else 0.54
    return ems * points / 72


def lines_of(text, points, room):
    """How many lines a text takes when it is broken at words."""
    lines, used = 1, 0.0
    for word in text.split():
        width = width_of(word + " ", points)
        if used and used + width > room:
            lines, used = lines + 1, 0.0
        used += width
        while used > room:
            lines, used = lines + 1, used - room
    return lines


def text_height(blocks, points, room):
    """Inches that a group of text blocks takes at a size."""
    height = 0.0
    for block in blocks:
        if block["kind"] == "list":
            for item in block["items"]:
                size = points - 2 * item["level"]
                height += lines_of(plain(item["runs"]), size, room - 0.35 * (item["level"] + 1)) * size * 1.2 / 72 + 0.11
        else:
            height += lines_of(plain(block["runs"]), points, room) * points * 1.2 / 72 + 0.13
    return height


def _groups(column):
    """Neighbouring text blocks become one group."""
    groups = []
    for block in column:
        if block["kind"] in ("list", "text"):
            if groups and groups[-1][0] == "text":
                groups[-1][1].append(block)
            else:
                groups.append(("text", [block]))
        else:
            groups.append((block["kind"], [block]))
    return groups


def table_points(block):
    """The text size of a table: large while it is small."""
    rows = block["rows"]
    return 18 if len(rows) <= 7 and len(rows[0]) <= 5 and max(len(plain(cell)) for row in rows for cell in row) <= 30 else 14


def _fixed_height(kind, block, room, points):
    if kind == "table":
        size, columns = table_points(block), len(block["rows"][0])
        return sum(max([lines_of(plain(cell), size, room / columns - 0.2) for cell in row] or [1]) * size * 1.25 / 72 + 0.22 for row in block["rows"])
    if kind == "code":
        return len(block["lines"]) * 0.245 + 0.35
    if kind == "quote":
        return sum(lines_of(line, QUOTE, room - 0.5) * QUOTE * 1.25 / 72 if not line.startswith(("—", "--")) else 0.5 for line in block["lines"]) + 0.3
    if kind == "figure":
        return FIGURE * 1.25 / 72 + lines_of(plain(block["runs"]), 22, room) * 0.4
    return None


def place(slide):
    """[(kind, blocks, x, y, width, height, points)] and the inches by which the content is too high."""
    columns = [column for column in slide.columns if column]
    gap, placed, over = 0.5, [], 0.0
    room = (RIGHT - LEFT - gap * (len(columns) - 1)) / max(len(columns), 1)
    for at, column in enumerate(columns):
        x, groups = LEFT + at * (room + gap), _groups(column)
        space = BOTTOM - TOP - 0.2 * (len(groups) - 1)
        flexible = sum(1 for kind, _ in groups if kind in ("image", "chart"))
        wish = 1.8 * flexible
        for points in SIZES:
            heights = [text_height(blocks, points, room) if kind == "text" else _fixed_height(kind, blocks[0], room, points) for kind, blocks in groups]
            used = sum(height for height in heights if height is not None)
            if used + wish <= space:
                break
        over = max(over, used + wish - space)
        rest = max((space - used) / flexible, 1.2) if flexible else 0
        y = TOP
        for (kind, blocks), height in zip(groups, heights):
            height = rest if height is None else height
            placed.append((kind, blocks, x, y, room, height, points, at))
            y += height + 0.2
    return placed, over


def advise(deck):
    """Adds warnings about what an audience cannot read."""
    for number, slide in enumerate(deck.slides, start=1):
        if slide.kind == "content":
            _, over = place(slide)
            if over > 0.05:
                deck.complain("warning", slide.line, f"slide {number} ({slide.title!r}) holds about {over:.1f} inches more than fits; cut words or split it")
            if not slide.blocks():
                deck.complain("warning", slide.line, f"slide {number} ({slide.title!r}) is empty")
            if len(slide.columns) > 3:
                deck.complain("warning", slide.line, f"slide {number} has {len(slide.columns)} columns; three are the most that can be read")
            items = [item for block in slide.blocks() if block["kind"] == "list" for item in block["items"]]
            if len(items) > 7:
                deck.complain("warning", slide.line, f"slide {number} has {len(items)} bullets; keep to about five, the rest belongs into the notes")
        if lines_of(slide.title, 28 if slide.kind == "content" else 40, RIGHT - LEFT) > 2:
            deck.complain("warning", slide.line, f"slide {number}: the title takes more than two lines")
    titles = [slide.title for slide in deck.slides if slide.kind == "content"]
    for title in sorted({title for title in titles if titles.count(title) > 1}):
        deck.complain("warning", 1, f"{titles.count(title)} slides are titled {title!r}; a title should say what this slide adds")
