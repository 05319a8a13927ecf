#!/usr/bin/env python3
"""Answers colour questions: contrast of two colours, a scale from one, a set of design tokens.

Invariant: every pair the 'tokens' command promises as readable has been measured.
"""
import argparse
import sys

sys.dont_write_bytecode = True
from colour import contrast, from_oklch, mend, over, parse, to_hex, to_oklch  # noqa: E402

_STEPS = ((50, 0.975), (100, 0.945), (200, 0.885), (300, 0.81), (400, 0.72), (500, 0.63), (600, 0.54), (700, 0.45), (800, 0.36), (900, 0.28))


def scale(base):
    """[(name, colour)] with even lightness and the base's hue."""
    _, chroma, hue = to_oklch(base)
    return [(name, from_oklch(level, chroma * (0.25 if level > 0.93 else 0.55 if level > 0.86 else 1), hue) + (1.0,)) for name, level in _STEPS]


def tokens(base):
    """CSS custom properties for a light and a dark page around one brand colour."""
    _, chroma, hue = to_oklch(base)
    grey = lambda level: from_oklch(level, min(chroma, 0.012), hue) + (1.0,)  # noqa: E731
    themes = {}
    for theme, levels in (("light", (0.99, 0.965, 0.9, 0.48, 0.22)), ("dark", (0.17, 0.21, 0.31, 0.75, 0.95))):
        paper, raised, rule, soft, ink = (grey(level) for level in levels)
        accent = base if contrast(base, paper) >= 4.5 and contrast(base, raised) >= 4.5 else mend(base, raised, 4.6)
        if contrast(accent, paper) < 4.5:
            accent = mend(accent, paper, 4.6)
        white, black = (1.0, 1.0, 1.0, 1.0), grey(0.16)
        on_accent = white if contrast(white, accent) >= contrast(black, accent) else black
        themes[theme] = {"paper": paper, "raised": raised, "rule": rule, "soft": soft, "ink": ink, "accent": accent, "on-accent": on_accent}
    return themes


def main(arguments=None):
    """Parses and answers; the exit code."""
    parser = argparse.ArgumentParser(prog="colours.py", description="Contrast, scales, tokens. Exit codes: 0 good, 1 contrast too low, 2 bad input.")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("contrast", help="WCAG ratio of text on a background, and the nearest colour that passes")
    one.add_argument("text")
    one.add_argument("background")
    one.add_argument("--large", action="store_true", help="large text (24px, or 18.66px bold) or a control: 3 instead of 4.5")
    for name, words in (("scale", "ten steps of one hue"), ("tokens", "CSS variables for light and dark around one colour")):
        one = commands.add_parser(name, help=words)
        one.add_argument("colour")
    options = parser.parse_args(arguments)
    values = {name: parse(getattr(options, name)) for name in ("text", "background", "colour") if hasattr(options, name)}
    for name, value in values.items():
        if value is None:
            print(f"colours: {getattr(options, name)!r} is not a colour (write #rrggbb, rgb(), hsl(), oklch() or a name)", file=sys.stderr)
            return 2
    if options.command == "contrast":
        back = over(values["background"], (1.0, 1.0, 1.0, 1.0))
        front = over(values["text"], back)
        ratio, wanted = contrast(front, back), 3.0 if options.large else 4.5
        print(f"{ratio:.2f}:1 {'passes' if ratio >= wanted else 'fails'} (needs {wanted}:1)")
        if ratio < wanted:
            better = mend(front, back, wanted)
            if better:
                print(f"nearest that passes: {to_hex(better)} ({contrast(better, back):.2f}:1)")
            return 1
    elif options.command == "scale":
        for name, colour in scale(values["colour"]):
            print(f"--brand-{name}: {to_hex(colour)};  /* on white {contrast(colour, (1.0, 1.0, 1.0, 1.0)):.1f}:1 */")
    else:
        themes = tokens(values["colour"])
        for theme, names in themes.items():
            body = " ".join(f"--{name}: {to_hex(colour)};" for name, colour in names.items())
            print(f":root {{ color-scheme: light dark; {body} }}" if theme == "light" else f"@media (prefers-color-scheme: dark) {{ :root {{ {body} }} }}")
            print(f"/* {theme}: ink {contrast(names['ink'], names['paper']):.1f}, soft {contrast(names['soft'], names['raised']):.1f}, accent {contrast(names['accent'], names['paper']):.1f}, on accent {contrast(names['on-accent'], names['accent']):.1f} */")
    return 0


if __name__ == "__main__":
    sys.exit(main())
