"""Maps values to pixels and picks the ticks a reader expects.

Invariant: ticks are round numbers (or calendar steps) inside the domain, and two ticks never share a label.
"""
import math
from datetime import datetime, timezone

_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_DAY = 86400
_SUFFIXES = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))


def nice_step(span, count):
    """The round step (1, 2, 2.5 or 5 times a power of ten) that cuts span into about count parts."""
    raw = span / max(count, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    for factor in (1, 2, 2.5, 5, 10):
        if raw <= factor * power * 1.0000001:
            return factor * power
    return 10 * power


def linear_ticks(low, high, count=5, whole=False):
    """Round ticks that enclose low..high."""
    if low == high:
        pad = abs(low) * 0.1 or 1
        low, high = low - pad, high + pad
    step = nice_step(high - low, count)
    if whole:
        step = max(1, math.ceil(step - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(at * step, 12) for at in range(first, last + 1)]


def log_ticks(low, high):
    """Powers of ten that enclose low..high, with 2 and 5 between them when they are few."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    last = max(last, first + 1)
    factors = (1, 2, 5) if last - first <= 2 else (1,)
    step = max(1, (last - first) // 8)
    ticks = [factor * 10.0 ** power for power in range(first, last, step) for factor in factors]
    return ticks + [10.0 ** last]


def number_label(value, ticks=None, unit=""):
    """A short label; with ticks given, all of them get the same number of decimals and the same suffix."""
    family = [abs(tick) for tick in (ticks or [value]) if tick] or [1]
    top = max(family)
    divisor, suffix = 1, ""
    for size, letter in _SUFFIXES:
        if top >= size * (10 if letter == "k" and ticks is None else 1) and (letter != "k" or top >= 10000):
            divisor, suffix = size, letter
            break
    scaled = [tick / divisor for tick in family]
    decimals = next((d for d in range(0, 7) if all(abs(round(s, d) - s) <= 1e-9 * max(1, abs(s)) for s in scaled)), 2 if top >= 1 else 4)
    if ticks is None:
        decimals = min(decimals, 1 if suffix or abs(value) >= 10 else 2 if abs(value) >= 1 else 3)
    if top < 1e-4:
        text = f"{value:.2g}"
    else:
        text = f"{value / divisor:,.{decimals}f}"
    if float(text.replace(",", "")) == 0:
        text, suffix = ("0" if ticks is None or decimals == 0 else text.lstrip("-")), ""
    text = text.replace("-", "\u2212") + suffix
    if not unit:
        return text
    if unit in "$€£¥":
        return (text[0] + unit + text[1:]) if text.startswith("\u2212") else unit + text
    return text + ("" if unit in ("%", "°") else "\u00a0") + unit


def time_ticks(low, high, count=7):
    """(tick, label) pairs at calendar steps between two moments."""
    span = max(high - low, 1)
    steps = [(n * 60, "minute", n) for n in (1, 5, 15, 30)]
    steps += [(n * 3600, "hour", n) for n in (1, 3, 6, 12)]
    steps += [(n * _DAY, "day", n) for n in (1, 2, 7, 14)]
    steps += [(n * 30.44 * _DAY, "month", n) for n in (1, 2, 3, 6)]
    steps += [(n * 365.25 * _DAY, "year", n) for n in (1, 2, 5, 10, 20, 25, 50, 100, 200, 500)]
    _, unit, size = next((step for step in steps if span / step[0] <= count), steps[-1])
    ticks = _calendar(low, high, unit, size)
    if len(ticks) < 2:
        ticks = sorted({low, high})
        return [(tick, _utc(tick).strftime("%Y-%m-%d" if unit not in ("minute", "hour") else "%H:%M")) for tick in ticks]
    return [(tick, _time_label(tick, unit, at == 0)) for at, tick in enumerate(ticks)]


def _utc(moment):
    return datetime.fromtimestamp(moment, tz=timezone.utc)


def _calendar(low, high, unit, size):
    if unit in ("minute", "hour", "day"):
        step = size * {"minute": 60, "hour": 3600, "day": _DAY}[unit]
        start = low if unit == "day" and size > 1 else math.ceil(low / step) * step
        return [start + at * step for at in range(int((high - start) // step) + 1)]
    ticks, start = [], _utc(low)
    year, month = start.year, 1
    if unit == "year":
        year -= year % size
    while year <= 9998:
        moment = datetime(year, month, 1, tzinfo=timezone.utc).timestamp()
        if moment > high:
            break
        if moment >= low:
            ticks.append(moment)
        if unit == "year":
            year += size
        else:
            month += size
            year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    return ticks


def _time_label(tick, unit, first):
    at = _utc(tick)
    if unit == "year":
        return str(at.year)
    if unit == "month":
        return f"{_MONTHS[at.month - 1]} {at.year}" if first or at.month == 1 else _MONTHS[at.month - 1]
    if unit == "day":
        return f"{at.day} {_MONTHS[at.month - 1]}"
    return f"{at.day} {_MONTHS[at.month - 1]} {at:%H:%M}" if first or (at.hour, at.minute) == (0, 0) else f"{at:%H:%M}"


class Scale:
    """A value axis: domain to pixels, linear or logarithmic."""

    def __init__(self, low, high, start, end, log=False):
        self.low, self.high, self.start, self.end, self.log = low, high, start, end, log

    def __call__(self, value):
        if self.log:
            share = (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        else:
            share = (value - self.low) / ((self.high - self.low) or 1)
        return self.start + share * (self.end - self.start)


class Bands:
    """A category axis: each place gets a band of equal width."""

    def __init__(self, count, start, end):
        self.start, self.width = start, (end - start) / max(count, 1)

    def centre(self, at):
        return self.start + (at + 0.5) * self.width
