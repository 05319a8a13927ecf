"""Renders parsed Markdown as one self-contained HTML page.

Invariant: raw HTML is shown as text, only http(s), mailto, relative and # links stay links, and local pictures become part of the page.
"""
import base64
import html
import os
import re

from markdown_blocks import blocks_of, front_matter, slug, walk

_PICTURES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".svg": "image/svg+xml", ".webp": "image/webp"}
_LARGEST_PICTURE = 20 * 1024 * 1024


class Page:
    """Renders one document; missing collects pictures that could not be put in."""

    def __init__(self, text, folder):
        self.meta, start = front_matter(text)
        self.blocks = blocks_of(text.split("\n"), start)
        self.folder, self.missing, self.anchors = folder, [], {}
        self.notes = {block["name"]: block["text"] for block in walk(self.blocks) if block["kind"] == "footnote"}
        self.order, self.seen = [], {}

    def inline(self, text):
        """Inline Markdown as HTML."""
        kept = []

        def keep(piece):
            kept.append(piece)
            return f"\x00{len(kept) - 1}\x00"

        text = text.replace("\x00", "")
        text = re.sub(r"(`+)(.+?)(?<!`)\1(?!`)", lambda match: keep(f"<code>{html.escape(match.group(2).strip())}</code>"), text)
        text = re.sub(r"\\([\\`*_{}\[\]()#+\-.!|>~])", lambda match: keep(html.escape(match.group(1))), text)
        text = re.sub(r"!\[([^\]]*)\]\(([^)\s]+)(?:\s+\"([^\"]*)\")?\)", lambda match: keep(self._picture(*match.groups())), text)
        text = re.sub(r"\[\^([^\]\s]+)\]", lambda match: keep(self._note(match.group(1))), text)
        text = re.sub(r"\[([^\]]+)\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?:\s+\"[^\"]*\")?\)", lambda match: keep(self._link(match.group(1), match.group(2))), text)
        text = re.sub(r"<(https?://[^>\s]+)>", lambda match: keep(self._link(match.group(1), match.group(1))), text)
        text = html.escape(text, quote=False)
        text = re.sub(r"(?<![\w\"'=/\x00])(https?://[^\s<>\x00]*[^\s<>\x00.,;:!?)\]'\"])", lambda match: f'<a href="{match.group(1)}">{match.group(1)}</a>', text)
        text = re.sub(r"\*\*(?=\S)(.+?)(?<=\S)\*\*", r"<strong>\1</strong>", text)
        text = re.sub(r"(?<![\w*])\*(?=\S)([^*]+?)(?<=\S)\*(?![\w*])", r"<em>\1</em>", text)
        text = re.sub(r"(?<![\w_])_(?=\S)([^_]+?)(?<=\S)_(?![\w_])", r"<em>\1</em>", text)
        text = re.sub(r"~~(?=\S)(.+?)(?<=\S)~~", r"<del>\1</del>", text)
        text = re.sub(r"(  +|\\)\n", "<br>\n", text)
        while "\x00" in text:
            text = re.sub(r"\x00(\d+)\x00", lambda match: kept[int(match.group(1))], text)
        return text

    def _link(self, words, address):
        if re.match(r"^[a-zA-Z][\w+.-]*:", address) and not re.match(r"^(https?|mailto):", address, re.I):
            return self.inline(words)
        return f'<a href="{html.escape(address)}">{self.inline(words) if words != address else html.escape(words)}</a>'

    def _note(self, name):
        if name not in self.notes:
            return html.escape(f"[^{name}]")
        if name not in self.order:
            self.order.append(name)
        number = self.order.index(name) + 1
        self.seen[name] = self.seen.get(name, 0) + 1
        mark = f' id="back-{number}"' if self.seen[name] == 1 else ""
        return f'<sup{mark}><a href="#note-{number}">{number}</a></sup>'

    def _picture(self, alt, address, title):
        source = address
        if not re.match(r"^(https?:|data:)", address):
            path = os.path.join(self.folder, address)
            kind = _PICTURES.get(os.path.splitext(path)[1].lower())
            try:
                if kind is None or os.path.getsize(path) > _LARGEST_PICTURE:
                    raise OSError("not a picture that can be put in")
                with open(path, "rb") as handle:
                    source = f"data:{kind};base64,{base64.b64encode(handle.read()).decode('ascii')}"
            except OSError:
                self.missing.append(address)
        caption = f"<figcaption>{html.escape(title)}</figcaption>" if title else ""
        image = f'<img src="{html.escape(source)}" alt="{html.escape(alt)}">'
        return f"<figure>{image}{caption}</figure>" if caption else image

    def anchor(self, text):
        """A heading's anchor; repeated ones are numbered."""
        base = slug(text) or "section"
        self.anchors[base] = self.anchors.get(base, -1) + 1
        return base if not self.anchors[base] else f"{base}-{self.anchors[base]}"

    def render(self, blocks):
        """Blocks as HTML."""
        out = []
        for block in blocks:
            kind = block["kind"]
            if kind == "heading":
                name = self.anchor(block["text"])
                out.append(f'<h{block["level"]} id="{name}">{self.inline(block["text"])}</h{block["level"]}>')
            elif kind == "paragraph":
                inner = self.inline("\n".join(block["lines"]).strip())
                out.append(inner if re.match(r"^<figure>.*</figure>$", inner, re.S) else f"<p>{inner}</p>")
            elif kind == "code":
                out.append(f"<pre><code>{html.escape(chr(10).join(block['lines']))}</code></pre>")
            elif kind == "rule":
                out.append("<hr>")
            elif kind == "quote":
                out.append(f"<blockquote>{self.render(block['blocks'])}</blockquote>")
            elif kind == "table":
                cells = lambda row, tag: "".join(f'<{tag}{"" if side == "left" else f" class={side}"}>{self.inline(cell)}</{tag}>' for cell, side in zip(row + [""] * len(block["align"]), block["align"]))  # noqa: E731
                rows = "\n".join(f"<tr>{cells(row, 'td')}</tr>" for row in block["rows"])
                out.append(f'<div class="table"><table><thead><tr>{cells(block["header"], "th")}</tr></thead><tbody>\n{rows}\n</tbody></table></div>')
            elif kind == "list":
                tag = "ol" if block["ordered"] else "ul"
                start = f' start="{block["start"]}"' if block["ordered"] and block["start"] != 1 else ""
                items = "\n".join(f"<li>{self._item(item)}</li>" for item in block["items"])
                out.append(f"<{tag}{start}>\n{items}\n</{tag}>")
        return "\n".join(out)

    def _item(self, item):
        inner = self.render(item)
        only = sum(1 for block in item if block["kind"] == "paragraph") == 1
        return re.sub(r"^<p>(.*?)</p>", r"\1", inner, count=1, flags=re.S) if only else inner

    def contents(self):
        """The table of contents, or nothing for a short report."""
        found = [block for block in self.blocks if block["kind"] == "heading" and 2 <= block["level"] <= 3]
        if sum(1 for block in found if block["level"] == 2) < 4:
            return ""
        names, before = {}, dict(self.anchors)
        self.anchors = {}
        for block in self.blocks:
            if block["kind"] == "heading":
                names[id(block)] = self.anchor(block["text"])
        self.anchors = before
        plain = lambda text: html.escape(re.sub(r"[*_`]|\[\^[^\]]*\]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)))  # noqa: E731
        rows = "\n".join(f'<li class="level-{block["level"]}"><a href="#{names[id(block)]}">{plain(block["text"])}</a></li>' for block in found)
        return f'<nav aria-label="Contents"><h2 class="contents">Contents</h2><ul>\n{rows}\n</ul></nav>'

    def document(self, style):
        """The whole page."""
        titles = [block["text"] for block in self.blocks if block["kind"] == "heading" and block["level"] == 1]
        title = self.meta.get("title") or (titles[0] if titles else "Report")
        contents = self.contents()
        first = next((at for at, block in enumerate(self.blocks) if block["kind"] == "heading" and block["level"] == 2), len(self.blocks))
        head = self.render(self.blocks[:first])
        if self.meta.get("title") and not titles:
            head = f"<h1>{self.inline(self.meta['title'])}</h1>\n{head}"
        by = " · ".join(html.escape(self.meta[name]) for name in ("author", "date") if self.meta.get(name))
        if by:
            head = head.replace("</h1>", f'</h1>\n<p class="by">{by}</p>', 1)
        body = self.render(self.blocks[first:])
        notes = ""
        if self.order:
            rows, at = [], 0
            while at < len(self.order):
                rows.append(f'<li id="note-{at + 1}">{self.inline(self.notes[self.order[at]])} <a href="#back-{at + 1}" aria-label="back to the text">↩</a></li>')
                at += 1
            notes = '<section class="notes"><h2>Notes</h2><ol>\n' + "\n".join(rows) + "\n</ol></section>"
        language = html.escape(self.meta.get("lang", "en"))
        return (f'<!doctype html>\n<html lang="{language}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">\n'
                f"<title>{html.escape(re.sub(r'[*_`]', '', title))}</title>\n<style>\n{style}</style></head>\n<body>\n<article>\n{head}\n{contents}\n{body}\n{notes}\n</article>\n</body></html>\n")
