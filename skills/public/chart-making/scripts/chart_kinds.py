"""The five kinds of chart: line, bar, stacked, scatter, histogram.

Invariant: bars and stacks always stand on zero; a gap in the data is a gap in the drawing, never a zero.
"""
import math
from datetime import datetime, timezone

from chart_data import DataError, column_at, kind_of, moment, number, numbers, series_of
from chart_draw import (DASHES, Canvas, clip, escape, footer, header, mark, number_of, reference_lines, spread,
                        text_width, value_axis)
from chart_scale import Bands, Scale, linear_ticks, log_ticks, number_label, time_ticks

MOST_SERIES = 8


def draw(options, columns, rows):
    """The SVG text and a table (header, rows) of what was drawn."""
    return {"line": _line, "bar": _bar, "stacked": _bar, "scatter": _scatter, "histogram": _histogram}[options.kind](options, columns, rows)


def _colour(canvas, at):
    return canvas.palette[at % len(canvas.palette)]


def _limited(series):
    if len(series) > MOST_SERIES:
        raise DataError(f"{len(series)} series are too many to tell apart (at most {MOST_SERIES}); keep the important ones, use --top, or draw small multiples")
    return series


def _bounds(values, options, zero):
    values = list(values) + [value for value, _ in options.hline]
    low, high = min(values), max(values)
    if options.log_y:
        if low <= 0:
            raise DataError(f"--log-y needs values above zero; the smallest is {low}")
        ticks = log_ticks(low, high)
    else:
        if zero:
            low, high = min(low, 0), max(high, 0)
        ticks = linear_ticks(low, high, 5)
    return ticks


def _place_label(kind, place):
    if kind == "time":
        at = datetime.fromtimestamp(place, tz=timezone.utc)
        return at.strftime("%Y-%m" if (at.day, at.hour, at.minute) == (1, 0, 0) else "%Y-%m-%d" if (at.hour, at.minute) == (0, 0) else "%Y-%m-%d %H:%M")
    return number_label(place, None) if kind == "number" else str(place)


def _x_axis(canvas, kind, low, high, left, right, bottom, title):
    """Ticks below a continuous x axis; gives its scale."""
    if kind == "time":
        pairs = time_ticks(low, high, max(3, int((right - left) / 95)))
        scale = Scale(low, high, left, right)
    else:
        ticks = linear_ticks(low, high, max(3, int((right - left) / 90)), whole=kind == "year")
        if kind == "year":
            ticks = [tick for tick in ticks if low <= tick <= high] or [low, high]
            scale = Scale(low, high if high > low else low + 1, left, right)
            pairs = [(tick, str(int(tick))) for tick in ticks]
        else:
            scale = Scale(ticks[0], ticks[-1], left, right)
            pairs = [(tick, number_of(tick, ticks, "")) for tick in ticks]
    for tick, label in pairs:
        canvas.line(scale(tick), bottom, scale(tick), bottom + 5, canvas.colours["axis"])
        canvas.text(scale(tick), bottom + 19, label, anchor="middle", class_="x-tick")
    if title:
        canvas.text((left + right) / 2, bottom + 39, title, anchor="middle", colour=canvas.colours["ink"])
    return scale


def _left_room(ticks, unit):
    return 20 + max(text_width(number_of(tick, ticks, unit), 12) for tick in ticks) + 10


def _y_title(canvas, options, top):
    if options.y_title:
        canvas.text(20, top + 6, options.y_title, size=12)
        return top + 18
    return top


def _line(options, columns, rows):
    kind, places, series = series_of(columns, rows, options.x, options.y, options.group, options.agg)
    _limited(series)
    values = [value for _, column in series for value in column if value is not None]
    spread_is_small = min(values) > 0 and (max(values) - min(values)) < 0.5 * max(values)
    ticks = _bounds(values, options, zero=not options.log_y and (options.zero or not spread_is_small))
    canvas = Canvas(options.width, options.height, options.theme)
    direct = len(series) > 1
    label_room = min(max(text_width(name, 12) for name, _ in series) + 18, options.width * 0.28) if direct else 16
    top = _y_title(canvas, options, header(canvas, options, None))
    bottom = footer(canvas, options) - 22 - (20 if options.x_title else 0)
    left, right = _left_room(ticks, options.unit), options.width - 20 - label_room
    y = Scale(ticks[0], ticks[-1], bottom, top + 6, options.log_y)
    value_axis(canvas, y, ticks, options.unit, left, right)
    if kind == "category":
        bands = Bands(len(places), left, right)
        x_of = {place: bands.centre(at) for at, place in enumerate(places)}
        every = max(1, math.ceil(max(text_width(place, 12) + 12 for place in places) / bands.width))
        for at, place in enumerate(places):
            if at % every == 0:
                canvas.text(bands.centre(at), bottom + 19, place, anchor="middle", class_="x-tick")
        if options.x_title:
            canvas.text((left + right) / 2, bottom + 39, options.x_title, anchor="middle", colour=canvas.colours["ink"])
    else:
        inset = 6 if len(places) > 1 else (right - left) / 2
        scale = _x_axis(canvas, kind, places[0], places[-1], left + inset, right - inset, bottom, options.x_title)
        x_of = {place: scale(place) for place in places}
    reference_lines(canvas, options, y, left, right)
    ends = []
    for at, (name, column) in enumerate(series):
        points = [(x_of[place], y(value), place, value) if value is not None else None for place, value in zip(places, column)]
        _stroke(canvas, points, _colour(canvas, at), DASHES[at % len(DASHES)] if len(series) > 4 else "")
        if len(places) <= 40:
            for point in points:
                if point:
                    mark(canvas, at, point[0], point[1], 3.4, _colour(canvas, at), f"{name}, {_place_label(kind, point[2])}: {number_label(point[3], None, options.unit)}")
        last = next(point for point in reversed(points) if point)
        ends.append((last[1], name, _colour(canvas, at)))
    if direct:
        for (wanted, name, colour), at in zip(ends, spread([end[0] for end in ends], 15, top + 8, bottom)):
            canvas.text(right + 10, at + 4, clip(name, 12, label_room - 8), colour=colour if options.theme == "dark" else _darker(colour), weight=600, class_="series-label")
    table = [[_place_label(kind, place) if kind != "year" else str(place)] + [column[at] for _, column in series] for at, place in enumerate(places)]
    return _finish(canvas, options, series), ([options.x] + [name for name, _ in series], table)


def _darker(colour):
    """The colour as text on white: dark enough to read."""
    parts = [int(colour[at:at + 2], 16) for at in (1, 3, 5)]
    while 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2] > 110:
        parts = [int(part * 0.9) for part in parts]
    return "#" + "".join(f"{part:02X}" for part in parts)


def _stroke(canvas, points, colour, dash):
    path, pen_up = [], True
    for point in points:
        if point is None:
            pen_up = True
            continue
        path.append(f"{'M' if pen_up else 'L'}{point[0]:.2f} {point[1]:.2f}")
        pen_up = False
    canvas.add("path", d="".join(path), fill="none", stroke=colour, stroke_width=2.4, stroke_linejoin="round",
               stroke_linecap="round" if not dash else None, stroke_dasharray=dash or None, class_="series")


def _bar(options, columns, rows):
    kind, places, series = series_of(columns, rows, options.x, options.y, options.group, options.agg)
    stacked = options.kind == "stacked"
    if options.log_y:
        raise DataError("bars have no meaning on a logarithmic axis; draw a line or a scatter chart")
    labels = [_place_label(kind, place) for place in places]
    totals = [sum(column[at] or 0 for _, column in series) for at in range(len(places))]
    order = list(range(len(places)))
    if options.sort != "none":
        order.sort(key=lambda at: totals[at], reverse=options.sort == "desc")
    if options.top and options.top < len(order):
        if options.sort == "none":
            order.sort(key=lambda at: totals[at], reverse=True)
        rest = order[options.top:]
        order = order[:options.top]
        labels.append(f"Other ({len(rest)})")
        for _, column in series:
            column.append(sum(column[at] or 0 for at in rest))
        order.append(len(labels) - 1)
    labels = [labels[at] for at in order]
    series = _limited([(name, [column[at] for at in order]) for name, column in series])
    if stacked and options.percent:
        series = _as_shares(series)
    if stacked:
        sums = [sum(max(column[at] or 0, 0) for _, column in series) for at in range(len(labels))]
        sums += [sum(min(column[at] or 0, 0) for _, column in series) for at in range(len(labels))]
    else:
        sums = [value for _, column in series for value in column if value is not None]
    ticks = [0, 25, 50, 75, 100] if stacked and options.percent else _bounds(sums, options, zero=True)
    unit = "%" if stacked and options.percent else options.unit
    widest = max(text_width(label, 12) for label in labels)
    flat = options.horizontal
    if flat is None:
        flat = kind == "category" and widest + 8 > (options.width - 90) / len(labels)
    height = options.height
    if flat:
        per_band = 22 if stacked or len(series) == 1 else 12 * len(series) + 8
        height = max(height, per_band * len(labels) + 150)
    canvas = Canvas(options.width, height, options.theme)
    legend = [(name, _colour(canvas, at), None) for at, (name, _) in enumerate(series)] if len(series) > 1 else None
    top = header(canvas, options, legend)
    bottom = footer(canvas, options) - 22 - (20 if (options.y_title if flat else options.x_title) else 0)
    show_values = len(labels) * (1 if stacked else len(series)) <= 24 and not (stacked and len(series) > 1)
    if flat:
        _bars_flat(canvas, options, labels, series, ticks, unit, top, bottom, stacked, show_values, min(widest + 12, options.width * 0.36))
    else:
        _bars_upright(canvas, options, labels, series, ticks, unit, _y_title(canvas, options, top), bottom, stacked, show_values)
    table = [[label] + [column[at] for _, column in series] for at, label in enumerate(labels)]
    return _finish(canvas, options, series), ([options.x] + [name for name, _ in series], table)


def _as_shares(series):
    if any(value is not None and value < 0 for _, column in series for value in column):
        raise DataError("--percent needs values that are not negative")
    totals = [sum(column[at] or 0 for _, column in series) or 1 for at in range(len(series[0][1]))]
    return [(name, [None if value is None else 100 * value / total for value, total in zip(column, totals)]) for name, column in series]


def _spans(series, at, stacked):
    """(series number, from, to) of every bar in one band."""
    above, below = 0, 0
    for order, (_, column) in enumerate(series):
        value = column[at]
        if value is None:
            continue
        if not stacked:
            yield order, 0, value
        elif value >= 0:
            yield order, above, above + value
            above += value
        else:
            yield order, below, below + value
            below += value


def _bars_upright(canvas, options, labels, series, ticks, unit, top, bottom, stacked, show_values):
    left, right = _left_room(ticks, unit), options.width - 24
    y = Scale(ticks[0], ticks[-1], bottom, top + 10)
    value_axis(canvas, y, ticks, unit, left, right)
    bands = Bands(len(labels), left, right)
    slots = 1 if stacked else len(series)
    thick = min(bands.width * 0.76 / slots, 72)
    every = max(1, math.ceil(max(text_width(label, 12) + 8 for label in labels) / bands.width))
    for at, label in enumerate(labels):
        if at % every == 0:
            canvas.text(bands.centre(at), bottom + 19, label, anchor="middle", class_="x-tick")
        for order, start, end in _spans(series, at, stacked):
            x = bands.centre(at) - thick * slots / 2 + (0 if stacked else order * thick)
            value = series[order][1][at]
            _box(canvas, x + (0.75 if slots > 1 else 0), min(y(start), y(end)), thick - (1.5 if slots > 1 else 0), abs(y(end) - y(start)), order, series, label, value, unit)
            if show_values and text_width(number_label(value, None, unit), 11) <= thick + 6:
                canvas.text(x + thick / 2, y(end) - 5 if value >= 0 else y(end) + 14, number_label(value, None, unit), size=11,
                            anchor="middle", colour=canvas.colours["ink"], class_="value")
    canvas.line(left, y(0), right, y(0), canvas.colours["axis"], 1.2)
    reference_lines(canvas, options, y, left, right)
    if options.x_title:
        canvas.text((left + right) / 2, bottom + 39, options.x_title, anchor="middle", colour=canvas.colours["ink"])


def _bars_flat(canvas, options, labels, series, ticks, unit, top, bottom, stacked, show_values, label_room):
    left, right = 20 + label_room, options.width - 24 - (44 if show_values else 12)
    x = Scale(ticks[0], ticks[-1], left, right)
    for tick in ticks:
        canvas.line(x(tick), top, x(tick), bottom, canvas.colours["grid"])
        canvas.text(x(tick), bottom + 19, number_of(tick, ticks, unit), anchor="middle", class_="y-tick")
    bands = Bands(len(labels), top, bottom)
    slots = 1 if stacked else len(series)
    thick = min(bands.width * 0.76 / slots, 34)
    for at, label in enumerate(labels):
        canvas.text(left - 10, bands.centre(at) + 4, clip(label, 12, label_room - 8), anchor="end", colour=canvas.colours["ink"], class_="x-tick")
        for order, start, end in _spans(series, at, stacked):
            y = bands.centre(at) - thick * slots / 2 + (0 if stacked else order * thick)
            value = series[order][1][at]
            _box(canvas, min(x(start), x(end)), y + (0.75 if slots > 1 else 0), abs(x(end) - x(start)), thick - (1.5 if slots > 1 else 0), order, series, label, value, unit)
            if show_values:
                canvas.text(x(end) + (6 if value >= 0 else -6), y + thick / 2 + 4, number_label(value, None, unit), size=11,
                            anchor="start" if value >= 0 else "end", colour=canvas.colours["ink"], class_="value")
    canvas.line(x(0), top, x(0), bottom, canvas.colours["axis"], 1.2)
    for value, words in options.hline:
        canvas.line(x(value), top, x(value), bottom, canvas.colours["ink"], 1.2, "5 4")
        canvas.text(x(value) + 5, top - 3, words, size=11, colour=canvas.colours["ink"], weight=600)
    if options.y_title:
        canvas.text((left + right) / 2, bottom + 39, options.y_title, anchor="middle", colour=canvas.colours["ink"])


def _box(canvas, x, y, width, height, order, series, label, value, unit):
    name = f"{series[order][0]}, {label}" if len(series) > 1 else label
    canvas.add("rect", f"<title>{escape(name)}: {escape(number_label(value, None, unit))}</title>", x=float(x), y=float(y), width=float(max(width, 0)),
               height=float(max(height, 0)), fill=_colour(canvas, order), class_="bar", stroke=canvas.colours["paper"], stroke_width=0.6)


def _scatter(options, columns, rows):
    x_at, kind = column_at(columns, options.x), kind_of([row[column_at(columns, options.x)] for row in rows])
    if kind == "category":
        raise DataError(f"column {options.x!r} is not numeric; a scatter chart needs numbers or dates on x (for categories draw bars)")
    convert = moment if kind == "time" else number
    groups = {}
    for y in options.y:
        for row, value in zip(rows, numbers(rows, column_at(columns, y), y)):
            place = convert(row[x_at])
            if place is None or value is None:
                continue
            name = str(row[column_at(columns, options.group)]).strip() if options.group else y
            note = str(row[column_at(columns, options.label)]).strip() if options.label else ""
            groups.setdefault(name, []).append((place, value, note))
    series = _limited(list(groups.items()))
    if not series:
        raise DataError("no row has both an x and a y")
    points = [point for _, inner in series for point in inner]
    low, high = min(point[0] for point in points), max(point[0] for point in points)
    ticks = _bounds([point[1] for point in points], options, zero=options.zero)
    canvas = Canvas(options.width, options.height, options.theme)
    legend = [(name, _colour(canvas, at), at) for at, (name, _) in enumerate(series)] if len(series) > 1 else None
    top = _y_title(canvas, options, header(canvas, options, legend))
    bottom = footer(canvas, options) - 22 - (20 if options.x_title else 0)
    left, right = _left_room(ticks, options.unit), options.width - 28
    y = Scale(ticks[0], ticks[-1], bottom, top + 6, options.log_y)
    value_axis(canvas, y, ticks, options.unit, left, right)
    canvas.line(left, bottom, right, bottom, canvas.colours["axis"], 1.2)
    x = _x_axis(canvas, kind, low, high, left + 8, right - 8, bottom, options.x_title)
    opacity = 0.85 if len(points) <= 200 else 0.5
    size = 4.6 if len(points) <= 200 else 3
    for at, (name, inner) in enumerate(series):
        for place, value, note in inner:
            words = f"{note or name}: {_place_label(kind, place)}, {number_label(value, None, options.unit)}"
            mark(canvas, at, x(place), y(value), size, _colour(canvas, at), words, opacity)
            if note and len(points) <= 30:
                end = x(place) + 8 + text_width(note, 11) < right
                canvas.text(x(place) + (8 if end else -8), y(value) + 4, note, size=11, anchor="start" if end else "end", class_="note")
    if options.trend:
        _trend(canvas, points, x, y, ticks)
    reference_lines(canvas, options, y, left, right)
    table = [[name, _place_label(kind, place), value] for name, inner in series for place, value, _ in inner]
    return _finish(canvas, options, series), (["series", options.x, ", ".join(options.y)], table)


def _trend(canvas, points, x, y, ticks):
    n = len(points)
    mean_x, mean_y = sum(point[0] for point in points) / n, sum(point[1] for point in points) / n
    spread_x = sum((point[0] - mean_x) ** 2 for point in points)
    if n < 3 or not spread_x or y.log:
        raise DataError("--trend needs a linear axis and at least three points with different x")
    slope = sum((point[0] - mean_x) * (point[1] - mean_y) for point in points) / spread_x
    ends = [(place, mean_y + slope * (place - mean_x)) for place in (min(p[0] for p in points), max(p[0] for p in points))]
    ends = [(place, min(max(value, ticks[0]), ticks[-1])) for place, value in ends]
    canvas.line(x(ends[0][0]), y(ends[0][1]), x(ends[1][0]), y(ends[1][1]), canvas.colours["ink"], 1.6, "6 4")


def _histogram(options, columns, rows):
    name = options.y[0] if options.y else options.x
    values = [value for value in numbers(rows, column_at(columns, name), name) if value is not None]
    if len(values) < 2:
        raise DataError(f"column {name!r} holds {len(values)} numbers; a histogram needs at least two")
    low, high = min(values), max(values)
    ordered = sorted(values)
    spread_mid = ordered[int(0.75 * (len(values) - 1))] - ordered[int(0.25 * (len(values) - 1))]
    bins = options.bins
    if not bins:
        width = 2 * spread_mid / len(values) ** (1 / 3) if spread_mid else 0
        bins = math.ceil((high - low) / width) if width else math.ceil(math.log2(len(values)) + 1)
        bins = max(5, min(bins, 40))
    edges = linear_ticks(low, high, bins)
    counts = [0] * (len(edges) - 1)
    step = edges[1] - edges[0]
    for value in values:
        counts[min(int((value - edges[0]) / step + 1e-9), len(counts) - 1)] += 1
    ticks = linear_ticks(0, max(counts), 5, whole=True)
    canvas = Canvas(options.width, options.height, options.theme)
    options.y_title = options.y_title or "Count"
    top = _y_title(canvas, options, header(canvas, options, None))
    bottom = footer(canvas, options) - 42
    left, right = _left_room(ticks, ""), options.width - 28
    y = Scale(ticks[0], ticks[-1], bottom, top + 20)
    value_axis(canvas, y, ticks, "", left, right)
    x = Scale(edges[0], edges[-1], left + 8, right - 8)
    for at, count in enumerate(counts):
        words = f"{number_label(edges[at], edges)} to {number_label(edges[at + 1], edges)}: {count}"
        canvas.add("rect", f"<title>{escape(words)}</title>", x=x(edges[at]) + 0.6, y=y(count), width=x(edges[at + 1]) - x(edges[at]) - 1.2,
                   height=bottom - y(count), fill=_colour(canvas, 0), class_="bar")
    every = max(1, math.ceil(len(edges) * 58 / (right - left)))
    for tick in edges[::every]:
        canvas.line(x(tick), bottom, x(tick), bottom + 5, canvas.colours["axis"])
        canvas.text(x(tick), bottom + 19, number_of(tick, edges, options.unit), anchor="middle", class_="x-tick")
    middle = len(ordered) // 2
    median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    canvas.line(x(median), top + 2, x(median), bottom, canvas.colours["ink"], 1.4, "5 4")
    at_right = x(median) < (left + right) / 2 + 60
    canvas.text(x(median) + (6 if at_right else -6), top + 12, f"median {number_label(median, None, options.unit)}", anchor="start" if at_right else "end",
                colour=canvas.colours["ink"], weight=600, paint_order="stroke", stroke=canvas.colours["paper"], stroke_width=3)
    canvas.text((left + right) / 2, bottom + 39, options.x_title or name, anchor="middle", colour=canvas.colours["ink"])
    table = [[f"{number_label(edges[at], edges)} to {number_label(edges[at + 1], edges)}", count] for at, count in enumerate(counts)]
    return _finish(canvas, options, [(name, values)]), ([name, "count"], table)


def _finish(canvas, options, series):
    words = options.alt or f"{options.kind} chart of {', '.join(name for name, _ in series)}" + (f" by {options.x}" if options.x else "") + "."
    return canvas.finish(options.title or words, words)
