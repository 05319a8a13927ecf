"""Draws the parts every chart shares: canvas, title, axes, legend, notes.

Invariant: all text passes through escape(), every coordinate is finite, and nothing is placed outside the canvas.
"""
import re
import unicodedata
from xml.sax.saxutils import escape, quoteattr

from chart_scale import number_label

# Okabe and Ito's colours, ordered so that neighbours differ in lightness too; yellow comes last because it is faint on white.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#5B5B5B", "#B8A600")
DARK_PALETTE = ("#56B4E9", "#E69F00", "#2BC48A", "#F0795A", "#E39CC4", "#5F8FE8", "#B4BDC6", "#F0E442")
THEMES = {
    "light": {"paper": "#FFFFFF", "ink": "#1F2328", "soft": "#59636E", "grid": "#E4E8EC", "axis": "#8C959F"},
    "dark": {"paper": "#14181D", "ink": "#F0F3F6", "soft": "#A8B3BF", "grid": "#2B323A", "axis": "#6E7781"},
}
DASHES = ("", "7 4", "2 3", "9 3 2 3", "12 4", "4 2", "1 3", "14 3 3 3")
FONT = "Inter, 'Helvetica Neue', Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"


def text_width(text, size):
    """About how wide a text is in a common sans-serif face; a little generous, so that labels do not touch."""
    width = 0.0
    for char in str(text):
        if unicodedata.east_asian_width(char) in "WF":
            width += 1.0
        elif char in "iljtfI.,:;'|!()[] ":
            width += 0.34
        elif char in "mwMW%@":
            width += 0.92
        elif char.isupper() or char == "&":
            width += 0.7
        else:
            width += 0.57
    return width * size


def clip(text, size, room):
    """The text, cut with an ellipsis when it is wider than the room."""
    text = str(text)
    if text_width(text, size) <= room:
        return text
    while text and text_width(text + "…", size) > room:
        text = text[:-1]
    return text.rstrip() + "…"


def wrap(text, size, room, lines=2):
    """The text in at most so many lines; the last one is cut when the rest does not fit."""
    words, out = str(text).split(), [""]
    for at, word in enumerate(words):
        candidate = f"{out[-1]} {word}".strip()
        if not out[-1] or text_width(candidate, size) <= room:
            out[-1] = candidate
        elif len(out) < lines:
            out.append(word)
        else:
            out[-1] = " ".join([out[-1]] + words[at:])
            break
    return [clip(line, size, room) for line in out]


class Canvas:
    """Collects SVG elements; finish() gives the document."""

    def __init__(self, width, height, theme):
        self.width, self.height, self.colours = width, height, THEMES[theme]
        self.palette = DARK_PALETTE if theme == "dark" else PALETTE
        self.parts = []

    def add(self, tag, text=None, **attributes):
        named = "".join(f" {name.rstrip('_').replace('_', '-')}={quoteattr(_form(value))}" for name, value in attributes.items() if value is not None)
        self.parts.append(f"<{tag}{named}/>" if text is None else f"<{tag}{named}>{text}</{tag}>")

    def text(self, x, y, words, size=12, colour=None, anchor="start", weight=None, **more):
        self.add("text", escape(str(words)), x=x, y=y, font_size=size, fill=colour or self.colours["soft"],
                 text_anchor=None if anchor == "start" else anchor, font_weight=weight, **more)

    def line(self, x1, y1, x2, y2, colour, width=1, dash=None):
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=colour, stroke_width=width, stroke_dasharray=dash)

    def finish(self, title, description):
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
                f'height="{self.height}" role="img" aria-labelledby="chart-title chart-desc" font-family={quoteattr(FONT)}>')
        named = f'<title id="chart-title">{escape(title)}</title><desc id="chart-desc">{escape(description)}</desc>'
        paper = f'<rect width="{self.width}" height="{self.height}" fill="{self.colours["paper"]}"/>'
        # XML has no room for control characters, wherever a label got them from.
        return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "", "\n".join([head, named, paper] + self.parts + ["</svg>", ""]))


def _form(value):
    if isinstance(value, float):
        text = f"{value:.2f}".rstrip("0").rstrip(".")
        return "0" if text in ("-0", "") else text
    return str(value)


def mark(canvas, shape, x, y, size, colour, title=None, opacity=None):
    """One data point; the shape says the series a second time, for readers who do not see the colour."""
    inner = f"<title>{escape(title)}</title>" if title else None
    paint = {"fill": colour, "fill_opacity": opacity, "stroke": canvas.colours["paper"], "stroke_width": 0.8}
    if shape == 0:
        canvas.add("circle", inner, cx=x, cy=y, r=size, class_="mark", **paint)
    elif shape == 1:
        canvas.add("rect", inner, x=x - size * 0.9, y=y - size * 0.9, width=size * 1.8, height=size * 1.8, class_="mark", **paint)
    else:
        corners = {2: [(0, -1.25), (1.15, 0.85), (-1.15, 0.85)], 3: [(0, -1.35), (1.35, 0), (0, 1.35), (-1.35, 0)], 4: [(0, 1.25), (1.15, -0.85), (-1.15, -0.85)]}[2 + (shape - 2) % 3]
        canvas.add("polygon", inner, points=" ".join(f"{x + dx * size:.2f},{y + dy * size:.2f}" for dx, dy in corners), class_="mark", **paint)


def header(canvas, options, legend):
    """Title, subtitle and legend; gives the y below them."""
    y, room = 20, canvas.width - 40
    if options.title:
        for line in wrap(options.title, 19, room):
            y += 22
            canvas.text(20, y - 4, line, size=19, colour=canvas.colours["ink"], weight=700)
    if options.subtitle:
        for line in wrap(options.subtitle, 13, room):
            y += 18
            canvas.text(20, y - 2, line, size=13)
    if legend:
        y += 12
        x = 20
        for name, colour, shape in legend:
            name = clip(name, 12, 200)
            width = text_width(name, 12) + 34
            if x + width > canvas.width - 20 and x > 20:
                x, y = 20, y + 20
            if shape is None:
                canvas.add("rect", x=x, y=y - 1, width=13, height=13, rx=2.5, fill=colour)
            else:
                mark(canvas, shape, x + 6, y + 5.5, 5, colour)
            canvas.text(x + 19, y + 10, name, size=12, colour=canvas.colours["ink"])
            x += width
        y += 14
    return y + 14


def footer(canvas, options):
    """The source note; gives the y above it."""
    y = canvas.height - 16
    if options.source:
        lines = wrap("Source: " + options.source, 11, canvas.width - 40)
        y -= 15 * (len(lines) - 1)
        for at, line in enumerate(lines):
            canvas.text(20, y + 15 * at, line, size=11)
        y -= 18
    return y


def value_axis(canvas, scale, ticks, unit, left, right, zero=True):
    """Horizontal grid lines with labels left of them."""
    for tick in ticks:
        y = scale(tick)
        baseline = zero and tick == 0
        canvas.line(left, y, right, y, canvas.colours["axis"] if baseline else canvas.colours["grid"], 1.2 if baseline else 1)
        canvas.text(left - 8, y + 4, number_of(tick, ticks, unit), size=12, anchor="end", class_="y-tick")


def number_of(tick, ticks, unit):
    """The label of one tick among its family."""
    return number_label(tick, ticks, unit)


def reference_lines(canvas, options, scale, left, right):
    """The --hline marks, each with its words at the left end, above the line."""
    for value, words in options.hline:
        if (scale.low <= value <= scale.high) or (scale.high <= value <= scale.low):
            y = scale(value)
            canvas.line(left, y, right, y, canvas.colours["ink"], 1.2, "5 4")
            canvas.text(left + 6, y - 6, words, size=12, colour=canvas.colours["ink"], weight=600, paint_order="stroke",
                        stroke=canvas.colours["paper"], stroke_width=3)


def spread(wanted, gap, low, high):
    """Moves label positions apart until no two are nearer than gap, keeping their order."""
    order = sorted(range(len(wanted)), key=lambda at: wanted[at])
    placed = [min(max(wanted[at], low), high) for at in order]
    for at in range(1, len(placed)):
        placed[at] = max(placed[at], placed[at - 1] + gap)
    if placed and placed[-1] > high:
        placed[-1] = high
        for at in range(len(placed) - 2, -1, -1):
            placed[at] = min(placed[at], placed[at + 1] - gap)
    result = [0.0] * len(wanted)
    for at, value in zip(order, placed):
        result[at] = value
    return result
