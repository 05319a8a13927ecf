"""Colour arithmetic: reading CSS colours, WCAG contrast, and even scales in OKLCH.

Invariant: colours are (red, green, blue, alpha) with channels from 0 to 1; what cannot be read is None, never a guess.
"""
import math
import re

_NAMES = {"black": "000000", "white": "ffffff", "red": "ff0000", "green": "008000", "blue": "0000ff", "gray": "808080", "grey": "808080", "silver": "c0c0c0", "maroon": "800000", "navy": "000080", "teal": "008080", "olive": "808000", "purple": "800080", "orange": "ffa500", "yellow": "ffff00", "lime": "00ff00", "aqua": "00ffff", "cyan": "00ffff", "fuchsia": "ff00ff", "magenta": "ff00ff", "pink": "ffc0cb", "brown": "a52a2a", "gold": "ffd700", "tomato": "ff6347", "coral": "ff7f50", "crimson": "dc143c", "indigo": "4b0082", "darkgray": "a9a9a9", "darkgrey": "a9a9a9", "lightgray": "d3d3d3", "lightgrey": "d3d3d3", "dimgray": "696969", "whitesmoke": "f5f5f5", "ivory": "fffff0", "beige": "f5f5dc", "steelblue": "4682b4", "slategray": "708090", "rebeccapurple": "663399"}


def parse(text):
    """The colour of a CSS value, or None."""
    text = text.strip().lower()
    if text == "transparent":
        return (0.0, 0.0, 0.0, 0.0)
    text = "#" + _NAMES[text] if text in _NAMES else text
    match = re.match(r"^#([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})$", text)
    if match:
        digits = match.group(1)
        if len(digits) <= 4:
            digits = "".join(digit * 2 for digit in digits)
        parts = [int(digits[at:at + 2], 16) / 255 for at in range(0, len(digits), 2)]
        return tuple(parts[:3]) + ((parts[3] if len(parts) == 4 else 1.0),)
    match = re.match(r"^(rgba?|hsla?|oklch)\(\s*([^)]*)\)$", text)
    if not match:
        return None
    parts = [part for part in re.split(r"[\s,/]+", match.group(2).strip()) if part]
    try:
        if len(parts) not in (3, 4):
            return None
        alpha = _share(parts[3]) if len(parts) == 4 else 1.0
        if match.group(1).startswith("rgb"):
            return tuple(min(1.0, max(0.0, float(part[:-1]) / 100 if part.endswith("%") else float(part) / 255)) for part in parts[:3]) + (alpha,)
        if match.group(1) == "oklch":
            lightness = _share(parts[0]) if parts[0].endswith("%") else float(parts[0])
            return from_oklch(lightness, float(parts[1]), float(parts[2].replace("deg", ""))) + (alpha,)
        return _hsl(float(parts[0].replace("deg", "")), _share(parts[1]), _share(parts[2])) + (alpha,)
    except ValueError:
        return None


def _share(text):
    return min(1.0, max(0.0, float(text[:-1]) / 100 if text.endswith("%") else float(text)))


def _hsl(hue, saturation, lightness):
    spread = saturation * min(lightness, 1 - lightness)
    channel = lambda n: lightness - spread * max(-1, min((n + hue / 30) % 12 - 3, 9 - (n + hue / 30) % 12, 1))  # noqa: E731
    return (channel(0), channel(8), channel(4))


def over(top, bottom):
    """A half-transparent colour laid on an opaque one."""
    alpha = top[3]
    return tuple(top[at] * alpha + bottom[at] * (1 - alpha) for at in range(3)) + (1.0,)


def _linear(channel):
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4


def luminance(colour):
    """Relative luminance as WCAG defines it."""
    return 0.2126 * _linear(colour[0]) + 0.7152 * _linear(colour[1]) + 0.0722 * _linear(colour[2])


def contrast(a, b):
    """The contrast ratio, 1 to 21."""
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def to_hex(colour):
    return "#" + "".join(f"{round(min(1, max(0, channel)) * 255):02x}" for channel in colour[:3])


def to_oklch(colour):
    """(lightness, chroma, hue in degrees)."""
    red, green, blue = (_linear(channel) for channel in colour[:3])
    long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
    medium = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
    short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
    a = 1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short
    b = 0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short
    return 0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short, math.hypot(a, b), math.degrees(math.atan2(b, a)) % 360


def from_oklch(lightness, chroma, hue):
    """The nearest colour a screen can show; chroma is lowered until it fits."""
    while True:
        a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
        long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
        medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
        short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
        parts = (4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short, -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short, -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short)
        if chroma < 0.001 or all(-0.0005 <= part <= 1.0005 for part in parts):
            parts = (min(1.0, max(0.0, part)) for part in parts)
            return tuple(part * 12.92 if part <= 0.0031308 else 1.055 * part ** (1 / 2.4) - 0.055 for part in parts)
        chroma -= 0.004


def mend(front, back, wanted):
    """The colour nearest to front that reaches the ratio on back, or None."""
    lightness, chroma, hue = to_oklch(front)
    for step in range(1, 101):
        for direction in ((-1, 1) if luminance(back) > 0.18 else (1, -1)):
            level = lightness + direction * step / 100
            if 0 <= level <= 1:
                tried = from_oklch(level, chroma, hue) + (1.0,)
                if contrast(tried, back) >= wanted + 0.02:
                    return tried
    return None
