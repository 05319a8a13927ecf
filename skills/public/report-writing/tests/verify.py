"""Checks the page and the findings that check.sh made, and throws odd text at the parser.

Invariant: the first wrong thing ends with exit 1.
"""
import json
import os
import random
import sys
from html.parser import HTMLParser

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scripts"))
from markdown_html import Page  # noqa: E402
from report_check import check  # noqa: E402

out = sys.argv[1]
checks = 0


def expect(good, words):
    global checks
    checks += 1
    if not good:
        sys.exit(f"FAIL {words}")


class Shape(HTMLParser):
    """Collects tags, ids, links and broken nesting."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.bad, self.words = [], [], [], [], [], ""

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        values = dict(attributes)
        if "id" in values:
            self.ids.append(values["id"])
        if tag == "a":
            self.links.append(values["href"])
        if tag not in ("meta", "img", "hr", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.bad.append(tag)

    def handle_data(self, data):
        self.words += data


def shape(text):
    page = Shape()
    page.feed(text)
    return page


with open(os.path.join(out, "pages/good.html"), encoding="utf-8") as handle:
    text = handle.read()
page = shape(text)
expect(not page.bad and not page.open, f"tags nest: {page.bad} {page.open}")
expect(len(page.ids) == len(set(page.ids)), "ids are unique")
for link in page.links:
    expect(not link.startswith("#") or link[1:] in page.ids, f"the link {link} has a target")
    expect(link.startswith(("#", "https://example.org")), f"no other links: {link}")
expect("script" not in page.tags and "<script>alert(1)</script>" in page.words, "raw HTML is shown as text")
expect("https://example.org/a?b=1&c=2" in page.links, "addresses in brackets")
expect("https://example.org/plain" in page.links, "bare addresses without the full stop")
expect(page.tags.count("table") == 1 and page.tags.count("th") == 3 and page.tags.count("td") == 6, "the table")
expect("Class B & <cold>" in page.words, "cells are escaped once")
expect(text.count("data:image/png;base64,") == 1 and "<figcaption>Cost a year</figcaption>" in text, "the picture is inside, with its caption")
expect("<li>nested <em>point</em></li>" in text and '<ol start="3">' in text, "lists")
expect("a second paragraph" in page.words and "*the team*" in page.words, "paragraphs in lists, escapes")
expect('echo "a < b && c"' in page.words, "code is kept")
expect("nav" in page.tags and "#what-the-options-cost" in page.links, "contents")
expect('</h1>\n<p class="by">Operations · 2026-11-15</p>' in text, "author and date")
expect("note-1" in page.ids and "The audit team restores monthly." in page.words, "footnotes")
expect(page.words.count("Move the archive to class B before March") == 1, "one title in the text")

with open(os.path.join(out, "bad.json"), encoding="utf-8") as handle:
    findings = json.load(handle)
expect(findings["error"] == sum(finding["level"] == "error" for finding in findings["findings"]) >= 10, "JSON counts its findings")

dice = random.Random(7)
pieces = ["# ", "- ", "1. ", "> ", "| a | b |\n|---|---|\n", "```\n", "[x](y)", "![p](q)", "[^n]", "[^n]: z", "**b", "`c", "<i>", "\n", "\n\n", "  ", "wörter ", "\x00", "\\", "[1]", "---\n", "\t"]
for _ in range(300):
    sample = "".join(dice.choice(pieces) for _ in range(dice.randrange(1, 40)))
    check(sample, out)
    odd = shape(Page(sample, out).document(""))
    expect("i" not in odd.tags, f"no raw HTML comes through: {sample!r}")
print(f"ok   {checks} facts of pages and findings")
