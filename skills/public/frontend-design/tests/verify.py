"""Measures the colours the scripts promised, with arithmetic of its own.

Invariant: the contrast formula here is written from WCAG's definition, not imported.
"""
import json
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scripts"))
from colour import from_oklch, parse, to_hex, to_oklch  # noqa: E402
from page_check import check_page  # noqa: E402

out = sys.argv[1]
checks = 0


def expect(good, words):
    global checks
    checks += 1
    if not good:
        sys.exit(f"FAIL {words}")


def ratio(a, b):
    def light(text):
        parts = [int(text[at:at + 2], 16) / 255 for at in (1, 3, 5)]
        parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
    high, low = max(light(a), light(b)), min(light(a), light(b))
    return (high + 0.05) / (low + 0.05)


with open(os.path.join(out, "tokens.txt"), encoding="utf-8") as handle:
    sets = re.findall(r":root \{([^}]*)\}", handle.read())
expect(len(sets) == 12, "a light and a dark set for each of six colours")
for text in sets:
    named = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", text))
    for front, back, wanted in (("ink", "paper", 7), ("ink", "raised", 7), ("soft", "paper", 4.5), ("soft", "raised", 4.5), ("accent", "paper", 4.5), ("on-accent", "accent", 4.5)):
        expect(ratio(named[front], named[back]) >= wanted, f"{front} on {back} in {text}: {ratio(named[front], named[back]):.2f}")
with open(os.path.join(out, "scale.txt"), encoding="utf-8") as handle:
    shades = re.findall(r"#[0-9a-f]{6}", handle.read())
levels = [ratio(shade, "#ffffff") for shade in shades]
expect(len(shades) == 10 and levels == sorted(levels), "a scale grows darker evenly")
for text in ("#0b6e5f", "#ff8800", "#123456", "#fefefe", "#000000"):
    expect(to_hex(from_oklch(*to_oklch(parse(text)))) == text, f"{text} survives the way through OKLCH")
expect(parse("rgb(255, 0, 0)") == (1, 0, 0, 1) and parse("#f00") == parse("red") and parse("nonsense(1)") is None and parse("#12") is None, "ways to write colours")

with open(os.path.join(out, "bad.json"), encoding="utf-8") as handle:
    findings = json.load(handle)
expect(all(finding["line"] >= 1 and finding["level"] in ("error", "warning") for finding in findings), "findings have lines and levels")
expect(next(finding for finding in findings if finding["rule"] == "inline-handler")["line"] == 27, "the line of the handler")
odd = ["<p", "<style>a{", "<style>@media{", "</div></div>", "<a href=#x style='color:var(--y)'>z", "<style>:root{--a:var(--a)}p{color:var(--a)}</style><p>x", "<svg><title>t</title></svg>", "<!-- ", "<input type=checkbox>", "\x00<b>"]
for piece in odd:
    check_page(f"<html lang=en>{piece}")
    checks += 1
print(f"ok   {checks} facts of colours and pages")
