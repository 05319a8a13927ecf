"""Writes a deck as one HTML file: no network, arrow keys, speaker notes, prints one slide a page.

Invariant: every text is escaped, every picture is inside the file, and only http(s), mailto and # links stay links.
"""
import base64
import html
import math

from deck_layout import on, palette, place, series_colours, table_points
from outline import runs

_STYLE = """
*{box-sizing:border-box}
html,body{margin:0;height:100%;background:#0b0d10;font-family:Arial,'Liberation Sans',sans-serif;color:VAR_INK}
.deck{height:100%;overflow:hidden;position:relative}
.slide{display:none;position:absolute;left:50%;top:50%;transform:translate(-50%,-50%);width:1280px;height:720px;background:VAR_PAPER;padding:56px 72px 60px;flex-direction:column;overflow:hidden}
.slide.on{display:flex}
.slide h2{font-size:37px;line-height:1.15;margin:0 0 26px;padding-top:20px;border-top:7px solid;border-image:linear-gradient(to right,VAR_ACCENT 58px,transparent 58px) 1}
.cols{flex:1;display:grid;grid-auto-flow:column;grid-auto-columns:minmax(0,1fr);gap:48px;min-height:0;padding-bottom:26px}
.col{display:flex;flex-direction:column;gap:20px;min-height:0;font-size:26px;line-height:1.35}
.col ul,.col ol{margin:0;padding-left:1.1em}.col li{margin:0 0 .45em}.col li::marker{color:VAR_ACCENT}.col li li{font-size:.9em;margin:.3em 0 0}
.col p{margin:0}code{font-family:'Courier New',monospace;background:VAR_TINT;padding:0 .2em;border-radius:3px}
pre{margin:0;background:VAR_TINT;padding:18px 22px;font:19px/1.45 'Courier New',monospace;border-radius:6px;overflow:auto}pre code{background:none;padding:0}
blockquote{margin:0;padding:6px 0 6px 30px;border-left:6px solid VAR_ACCENT;font-size:40px;line-height:1.35}blockquote footer{font-size:24px;color:VAR_SOFT;margin-top:14px}
.figure b{display:block;font-size:106px;line-height:1.1;color:VAR_ACCENT}.figure span{font-size:29px}
table{border-collapse:collapse;width:100%;font-size:20px}th{border-bottom:2.5px solid VAR_ACCENT}td{border-bottom:1px solid VAR_TINT}th,td{padding:9px 12px;text-align:left}
figure{margin:0;flex:1;min-height:0;display:flex;align-items:center;justify-content:center}figure img,figure svg{max-width:100%;max-height:100%;width:100%;height:100%;object-fit:contain}
.foot{position:absolute;left:72px;right:72px;bottom:26px;display:flex;justify-content:space-between;font-size:15px;color:VAR_SOFT}
.cover{background:VAR_COVER;color:VAR_CINK;justify-content:center}.cover h1{font-size:62px;line-height:1.1;margin:0 0 20px}.cover h1::after{content:'';display:block;width:90px;height:8px;background:VAR_ACCENT;margin-top:26px}
.cover p{font-size:29px;margin:0 0 12px}.cover .by{font-size:21px;color:VAR_CSOFT}
.section{background:VAR_ACCENT;color:VAR_ONACC;justify-content:center}.section h1{font-size:56px;margin:0 0 14px}.section p{font-size:27px;margin:0}
a{color:VAR_ACCENT}.section a,.cover a{color:inherit}
.notes{display:none;position:fixed;left:0;right:0;bottom:0;max-height:38%;overflow:auto;background:#fffbe6;color:#222;padding:18px 28px;font-size:18px;line-height:1.5;white-space:pre-line}
.show-notes .on+.notes{display:block}
@media print{@page{size:1280px 720px;margin:0}html,body,.deck{height:auto;display:block;background:none;overflow:visible}.slide{display:flex;position:relative;left:0;top:0;transform:none!important;break-after:page;-webkit-print-color-adjust:exact;print-color-adjust:exact}.notes{display:none!important}}
"""
_SCRIPT = """
const slides=[...document.querySelectorAll('.slide')];let at=0;
function show(to){at=Math.max(0,Math.min(slides.length-1,to));slides.forEach((s,i)=>{s.classList.toggle('on',i===at);s.setAttribute('aria-hidden',i!==at)});history.replaceState(null,'','#'+(at+1));fit()}
function fit(){const k=Math.min(innerWidth/1280,innerHeight/720);slides[at].style.transform='translate(-50%,-50%) scale('+k+')'}
addEventListener('resize',fit);
addEventListener('keydown',e=>{if(['ArrowRight','PageDown',' '].includes(e.key))show(at+1);else if(['ArrowLeft','PageUp'].includes(e.key))show(at-1);else if(e.key==='Home')show(0);else if(e.key==='End')show(slides.length-1);else if(e.key==='n')document.body.classList.toggle('show-notes');else if(e.key==='f')document.documentElement.requestFullscreen()});
addEventListener('click',e=>{if(!e.target.closest('a,.notes'))show(at+(e.clientX<innerWidth/4?-1:1))});
show((parseInt(location.hash.slice(1))||1)-1);
"""


def write_html(deck, path):
    """Writes the deck; gives the number of slides."""
    colours = palette(deck)
    style = _STYLE
    for name, slot in (("INK", "ink"), ("PAPER", "paper"), ("ACCENT", "accent"), ("TINT", "tint"), ("SOFT", "soft"), ("COVER", "cover"), ("CINK", "cover_ink"), ("CSOFT", "cover_soft")):
        style = style.replace(f"VAR_{name}", f"#{colours[slot]}")
    style = style.replace("VAR_ONACC", f"#{on(colours['accent'])}")
    body = "\n".join(_slide(deck, number, slide) for number, slide in enumerate(deck.slides, start=1))
    title = html.escape(deck.meta.get("title") or deck.slides[0].title)
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(f'<!doctype html>\n<html lang="{html.escape(deck.meta.get("lang", "en"))}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
                     f"<title>{title}</title><style>{style}</style></head>\n<body><main class=\"deck\">\n{body}\n</main>\n<script>{_SCRIPT}</script></body></html>\n")
    return len(deck.slides)


def inline(pieces):
    """Runs as HTML."""
    out = ""
    for piece in pieces:
        text = html.escape(piece["text"])
        for name, tag in (("bold", "strong"), ("italic", "em"), ("code", "code")):
            if piece.get(name):
                text = f"<{tag}>{text}</{tag}>"
        if piece.get("link") and piece["link"].startswith(("http://", "https://", "mailto:", "#")):
            text = f'<a href="{html.escape(piece["link"])}">{text}</a>'
        out += text
    return out


def _slide(deck, number, slide):
    meta = deck.meta
    if slide.kind == "title":
        by = " · ".join(filter(None, (meta.get("author"), meta.get("date"))))
        inner = f"<h1>{inline(runs(slide.title))}</h1>" + (f'<p>{html.escape(meta["subtitle"])}</p>' if meta.get("subtitle") else "") + (f'<p class="by">{html.escape(by)}</p>' if by else "")
        kind = "slide cover"
    elif slide.kind == "section":
        inner = f"<h1>{inline(runs(slide.title))}</h1>" + "".join(f"<p>{inline(block['runs'])}</p>" for block in slide.blocks() if block["kind"] == "text")
        kind = "slide section"
    else:
        placed = place(slide)[0]
        sizes = {column: points for *_, points, column in placed}
        boxes = {id(blocks[0]): (round(width * 96), round(height * 96)) for _, blocks, _, _, width, height, _, _ in placed}
        filled = [column for column in slide.columns if column]
        columns = "".join(f'<div class="col" style="font-size:{sizes[at] * 4 / 3:.0f}px">{"".join(_block(deck, block, boxes) for block in column)}</div>' for at, column in enumerate(filled))
        foot = html.escape(meta.get("footer", meta.get("title", "")))
        inner = f'<h2>{inline(runs(slide.title))}</h2><div class="cols">{columns}</div><div class="foot"><span>{foot}</span><span>{number}</span></div>'
        kind = "slide"
    notes = f'\n<aside class="notes">{html.escape(chr(10).join(slide.notes))}</aside>' if slide.notes else ""
    return f'<section class="{kind}" aria-label="Slide {number}">{inner}</section>{notes}'


def _block(deck, block, boxes):
    kind = block["kind"]
    if kind == "text":
        return f"<p>{inline(block['runs'])}</p>"
    if kind == "list":
        return _list(block["items"])
    if kind == "figure":
        return f'<div class="figure"><b>{html.escape(block["figure"])}</b><span>{inline(block["runs"])}</span></div>'
    if kind == "quote":
        words = "".join(f"<footer>{inline(runs(line.lstrip('-— ')))}</footer>" if line.startswith(("—", "--")) else f"<div>{inline(runs(line))}</div>" for line in block["lines"])
        return f"<blockquote>{words}</blockquote>"
    if kind == "code":
        return f"<pre><code>{html.escape(chr(10).join(block['lines']))}</code></pre>"
    if kind == "table":
        rows = ""
        for at, row in enumerate(block["rows"]):
            tag = "th" if at == 0 else "td"
            rows += "<tr>" + "".join(f'<{tag} style="text-align:{side}">{inline(cell)}</{tag}>' for cell, side in zip(row, block["align"])) + "</tr>"
        return f'<table style="font-size:{table_points(block) * 4 / 3:.0f}px">{rows}</table>'
    if kind == "chart":
        return f"<figure>{_chart(deck, block, boxes[id(block)])}</figure>" if block["series"] else ""
    if not block["file"]:
        return ""
    with open(block["file"], "rb") as handle:
        data = base64.b64encode(handle.read()).decode("ascii")
    kind = {"svg": "svg+xml"}.get(block["format"], block["format"])
    return f'<figure><img alt="{html.escape(block["alt"])}" src="data:image/{kind};base64,{data}"></figure>'


def _list(items):
    out, open_tags = "", []
    for item in items:
        tag = "ol" if item["ordered"] else "ul"
        while len(open_tags) > item["level"] + 1:
            out += f"</li></{open_tags.pop()}>"
        if len(open_tags) == item["level"] + 1:
            out += "</li>"
        while len(open_tags) < item["level"] + 1:
            out += f"<{tag}>" if len(open_tags) == item["level"] else f"<{tag}><li>"
            open_tags.append(tag)
        out += f"<li>{inline(item['runs'])}"
    while open_tags:
        out += f"</li></{open_tags.pop()}>"
    return out


def _chart(deck, block, size):
    """The chart as SVG, as large as its box on the slide."""
    wide, high_px = max(size[0], 320), max(size[1], 160)
    colours, palette_of = palette(deck), series_colours(deck)
    values = [value for _, column in block["series"] for value in column if value is not None] or [0]
    low, high = min(0, *values), max(0, *values)
    span = (high - low) or 1
    power = 10 ** math.floor(math.log10(span / 4))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if span / 4 <= factor * power * 1.0001)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = [at * step for at in range(first, last + 1)]
    many, count = len(block["series"]) > 1, max(len(block["categories"]), 1)
    label = lambda value: (block["unit"] if block["unit"] in "$€£¥" else "") + f"{value:,.4g}" + (block["unit"] if block["unit"] not in "$€£¥" else "")  # noqa: E731
    lying = block["chart"] == "bar"
    left = 30 + (max(len(name) for name in block["categories"]) * 9.2 if lying else max(len(label(tick)) for tick in ticks) * 10)
    top, bottom, right = (50 if many else 20), high_px - 40, wide - 46
    out, soft, ink = [], f"#{colours['soft']}", f"#{colours['ink']}"
    along = (lambda value: left + (value - ticks[0]) / (ticks[-1] - ticks[0]) * (right - left)) if lying else (lambda value: bottom - (value - ticks[0]) / (ticks[-1] - ticks[0]) * (bottom - top))
    for tick in ticks:
        at, rule = along(tick), f"#{colours['tint' if tick else 'soft']}"
        out.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{top}" y2="{bottom}" stroke="{rule}"/>' if lying else f'<line x1="{left}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}" stroke="{rule}"/>')
        place = f'x="{at:.1f}" y="{bottom + 24}" text-anchor="middle"' if lying else f'x="{left - 10}" y="{at + 5:.1f}" text-anchor="end"'
        out.append(f'<text {place} fill="{soft}">{html.escape(label(tick))}</text>')
    band = ((bottom - top) if lying else (right - left)) / count
    for at, name in enumerate(block["categories"]):
        centre = (top if lying else left) + (at + 0.5) * band
        place = f'x="{left - 10}" y="{centre + 5:.1f}" text-anchor="end"' if lying else f'x="{centre:.1f}" y="{bottom + 24}" text-anchor="middle"'
        out.append(f'<text {place} fill="{ink}">{html.escape(name)}</text>')
    for order, (name, column) in enumerate(block["series"]):
        paint = f"#{palette_of[order % len(palette_of)]}"
        if block["chart"] == "line":
            pieces, pen = "", "M"
            for at, value in enumerate(column):
                if value is None:
                    pen = "M"
                    continue
                pieces += f"{pen}{left + (at + 0.5) * band:.1f} {along(value):.1f}"
                pen = "L"
                out.append(f'<circle cx="{left + (at + 0.5) * band:.1f}" cy="{along(value):.1f}" r="5" fill="{paint}"><title>{html.escape(name)}: {html.escape(label(value))}</title></circle>')
            out.append(f'<path d="{pieces}" fill="none" stroke="{paint}" stroke-width="3.5"/>')
        else:
            thick = band * 0.7 / len(block["series"])
            for at, value in enumerate(column):
                if value is None:
                    continue
                start = (top if lying else left) + (at + 0.5) * band - band * 0.35 + order * thick
                size, near = abs(along(value) - along(0)), min(along(value), along(0))
                box = f'x="{near:.1f}" y="{start:.1f}" width="{size:.1f}" height="{thick - 2:.1f}"' if lying else f'x="{start:.1f}" y="{near:.1f}" width="{thick - 2:.1f}" height="{size:.1f}"'
                out.append(f'<rect {box} fill="{paint}"><title>{html.escape(name)}: {html.escape(label(value))}</title></rect>')
                if not many:
                    place = f'x="{along(value) + 8:.1f}" y="{start + thick / 2 + 4:.1f}"' if lying else f'x="{start + thick / 2:.1f}" y="{along(value) - 7:.1f}" text-anchor="middle"'
                    out.append(f'<text {place} fill="{ink}">{html.escape(label(value))}</text>')
        if many:
            x = left + order * 160
            out.append(f'<rect x="{x}" y="10" width="16" height="16" rx="3" fill="{paint}"/><text x="{x + 24}" y="24" fill="{ink}">{html.escape(name[:18])}</text>')
    words = html.escape(", ".join(name for name, _ in block["series"]))
    return f'<svg viewBox="0 0 {wide} {high_px}" role="img" aria-label="{block["chart"]} chart of {words}" font-size="17">{"".join(out)}</svg>'
