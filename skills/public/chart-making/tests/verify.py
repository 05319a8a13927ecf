"""Checks the drawings that check.sh made: geometry against the data, element by element.

Invariant: the first wrong thing ends with exit 1 and says which drawing it is in.
"""
import math
import os
import sys
import xml.etree.ElementTree as tree

SVG = "{http://www.w3.org/2000/svg}"
out = sys.argv[1]
checks = 0


def expect(good, words):
    global checks
    checks += 1
    if not good:
        sys.exit(f"FAIL {words}")


def load(name):
    root = tree.parse(os.path.join(out, name)).getroot()
    width, height = float(root.get("width")), float(root.get("height"))
    for element in root.iter():
        for attribute in ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy"):
            if element.get(attribute) is not None:
                value = float(element.get(attribute))
                limit = width if "x" in attribute else height
                expect(math.isfinite(value) and -1 <= value <= limit + 1, f"{name}: {attribute}={value} lies outside the canvas")
    expect(root.find(SVG + "title") is not None and root.find(SVG + "desc") is not None, f"{name}: no title or description")
    return root


def of(root, tag, name):
    return [element for element in root.iter(SVG + tag) if element.get("class") == name]


def near(a, b, words, slack=0.05):
    expect(abs(a - b) <= slack, f"{words}: {a} is not {b}")


line = load("line.svg")
expect(line.find(SVG + "title").text == "Revenue & <costs>", "line: title is escaped and kept")
paths = of(line, "path", "series")
expect(len(paths) == 3, "line: three series")
expect(paths[0].get("d").count("M") == 2, "line: the gap in revenue lifts the pen")
expect(paths[1].get("d").count("M") == 1, "line: costs have no gap")
ticks = {element.text: float(element.get("y")) - 4 for element in of(line, "text", "y-tick")}
expect(set(ticks) == {"€120", "€140", "€160", "€180", "€200"}, f"line: round ticks, got {sorted(ticks)}")
circles = [element for element in line.iter(SVG + "circle")]
expect(len(circles) == 6, "line: a mark for every value of the first series")
near(float(circles[0].get("cy")), ticks["€120"], "line: 120 lies on its grid line")
near(float(circles[-1].get("cy")), (ticks["€180"] + ticks["€200"]) / 2, "line: 190 lies between 180 and 200")
labels = [float(element.get("y")) for element in of(line, "text", "series-label")]
expect(len(labels) == 3 and all(abs(a - b) >= 14 for at, a in enumerate(labels) for b in labels[:at]), "line: end labels do not touch")
gaps = [float(b.get("cx")) - float(a.get("cx")) for a, b in zip(circles, circles[1:])]
expect(gaps[2] > 1.8 * gaps[0], "line: the missing month keeps its room on the time axis")

bar = load("bar.svg")
boxes = of(bar, "rect", "bar")
values = [1420, 310, 120, 12, -88]
expect([box.find(SVG + "title").text.rsplit(": ", 1)[1] for box in boxes] == ["1,420", "310", "120", "12", "\u221288"], "bar: sorted, separators and parentheses read")
scale = float(boxes[0].get("width")) / 1420
for box, value in zip(boxes, values):
    near(float(box.get("width")), abs(value) * scale, f"bar: length of {value}", 0.1)
expect(float(boxes[4].get("x")) + float(boxes[4].get("width")) <= float(boxes[0].get("x")) + 0.1, "bar: negative bars go to the other side of zero")
near_boxes = of(load("near.svg"), "rect", "bar")
near(float(near_boxes[0].get("height")) / float(near_boxes[1].get("height")), 50 / 60, "bars of 50 and 60 stand on zero", 0.002)
expect(of(load("control.svg"), "rect", "bar")[0].find(SVG + "title").text == "ab: 1", "control characters are left out")
top = load("top.svg")
expect([box.find(SVG + "title").text.split(":")[0] for box in of(top, "rect", "bar")][-1] == "Other (3)", "top: the rest is folded")

stacked = load("stacked.svg")
boxes = of(stacked, "rect", "bar")
heights = [float(box.get("height")) for box in boxes]
expect(len(boxes) == 6, "stacked: two parts in three years")
near(heights[0] / heights[1], 4, "stacked: 40 to 10", 0.02)
near(heights[0] + heights[1], heights[4] + heights[5], "stacked: shares add up to the same height", 0.2)
near(heights[2], heights[3], "stacked: equal parts are equal", 0.05)

scatter = load("scatter.svg")
marks = [element for element in scatter.iter() if element.get("class") == "mark" and element.find(SVG + "title") is not None]
expect(len(marks) == 3, "scatter: the row without y is left out")
expect({element.tag for element in marks} == {SVG + "circle", SVG + "rect"}, "scatter: groups differ in shape")
trend = [element for element in scatter.iter(SVG + "line") if element.get("stroke-dasharray") == "6 4"][0]
near(float(trend.get("y1")), float(marks[0].get("cy")), "scatter: the trend of a straight line starts on it", 0.1)
expect(scatter.find(SVG + "rect").get("fill") == "#14181D", "scatter: dark paper")

histogram = load("histogram.svg")
boxes = of(histogram, "rect", "bar")
counts = [int(box.find(SVG + "title").text.rsplit(": ", 1)[1]) for box in boxes]
expect(sum(counts) == 1000 and set(counts) == {100}, f"histogram: an even spread gives even bars, got {counts}")
words = "".join(element.text or "" for element in histogram.iter(SVG + "text"))
expect("median 499.5" in words or "median 500" in words, "histogram: the median is marked")

load("stdin.svg")
log = load("log.svg")
heights = sorted({round(float(element.get("cy")), 1) for element in log.iter(SVG + "circle")})
steps = [b - a for a, b in zip(heights, heights[1:])]
expect(len(heights) == 5 and max(steps) - min(steps) < 0.3, "log axis: equal factors are equal distances")

with open(os.path.join(out, "deep/er/page.html"), encoding="utf-8") as handle:
    page = handle.read()
expect("<td>Coal</td><td>80</td>" in page and "<td>Wind</td><td>70</td>" in page, "page: sums in the table")
print(f"ok   {checks} facts of the drawings")
