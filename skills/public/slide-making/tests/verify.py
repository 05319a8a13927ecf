"""Checks the packages and pages that check.sh made: parts, relationships, texts, numbers, geometry.

Invariant: the first wrong thing ends with exit 1 and says which file it is in.
"""
import io
import os
import posixpath
import re
import sys
import xml.etree.ElementTree as tree
import zipfile
from html.parser import HTMLParser

A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
out = sys.argv[1]
checks = 0


def expect(good, words):
    global checks
    checks += 1
    if not good:
        sys.exit(f"FAIL {words}")


def open_package(name):
    """Every part parses, is typed, and every relationship used exists."""
    archive = zipfile.ZipFile(os.path.join(out, name))
    expect(archive.testzip() is None, f"{name}: the zip is sound")
    names = set(archive.namelist())
    types = tree.fromstring(archive.read("[Content_Types].xml"))
    defaults = {entry.get("Extension") for entry in types if entry.tag.endswith("Default")}
    overrides = {entry.get("PartName").lstrip("/") for entry in types if entry.tag.endswith("Override")}
    expect(overrides <= names, f"{name}: types are declared for parts that do not exist: {overrides - names}")
    for part in names - {"[Content_Types].xml"}:
        expect(part in overrides or part.rsplit(".", 1)[-1] in defaults, f"{name}: {part} has no type")
        if part.endswith(".xml") and not part.startswith("docProps"):
            expect(part in overrides, f"{name}: {part} is typed as plain XML")
        if not part.endswith((".xml", ".rels")):
            continue
        root = tree.fromstring(archive.read(part))
        used = {value for element in root.iter() for key, value in element.attrib.items() if key.startswith(R)}
        folder, base = posixpath.split(part)
        rels = f"{folder}/_rels/{base}.rels".lstrip("/")
        known = {}
        if rels in names:
            for entry in tree.fromstring(archive.read(rels)):
                known[entry.get("Id")] = entry
                if entry.get("TargetMode") != "External":
                    target = posixpath.normpath(posixpath.join(folder, entry.get("Target")))
                    expect(target in names, f"{name}: {part} points to {target}, which does not exist")
        expect(used <= set(known), f"{name}: {part} uses relationships {used - set(known)} that do not exist")
        ids = [element.get("id") for element in root.iter(P + "cNvPr")]
        expect(len(ids) == len(set(ids)), f"{name}: {part} repeats a shape's id")
    return archive, names


def texts(archive, part):
    return ["".join(piece.text or "" for piece in paragraph.iter(A + "t")) for paragraph in tree.fromstring(archive.read(part)).iter(A + "p")]


def boxes(archive, part):
    found = []
    for holder in tree.fromstring(archive.read(part)).iter():
        if holder.tag in (A + "xfrm", P + "xfrm"):
            off, ext = holder.find(A + "off"), holder.find(A + "ext")
            found.append((int(off.get("x")), int(off.get("y")), int(ext.get("cx")), int(ext.get("cy"))))
    return [box for box in found if box[2]]


archive, names = open_package("new/full.pptx")
slides = sorted(name for name in names if re.match(r"ppt/slides/slide\d+\.xml$", name))
expect(len(slides) == 6, f"full: six slides, got {len(slides)}")
expect("Every block & <every> trick" in texts(archive, slides[0]), "full: the cover keeps & and <")
body = texts(archive, slides[2])
for words in ("bold and italic and code and a link", "second level <tag>", "third level", "A paragraph that is joined over two lines."):
    expect(words in body, f"full: {words!r} is on slide 3")
slide = tree.fromstring(archive.read(slides[2]))
expect([run.get("b") for run in slide.iter(A + "rPr")].count("1") >= 2, "full: bold runs")
expect(len(list(slide.iter(A + "buAutoNum"))) == 2, "full: numbered items")
expect({paragraph.get("lvl") for paragraph in slide.iter(A + "pPr")} >= {"1", "2"}, "full: levels")
links = [entry.get("Target") for entry in tree.fromstring(archive.read("ppt/slides/_rels/slide3.xml.rels")) if entry.get("TargetMode") == "External"]
expect(links == ["https://example.org/?a=1&b=2"], f"full: the link's address, got {links}")
expect("Second line of notes." in texts(archive, "ppt/notesSlides/notesSlide3.xml"), "full: speaker notes")
expect(len([name for name in names if name.startswith("ppt/media/")]) == 1, "full: a picture used twice is stored once")
picture = tree.fromstring(archive.read(slides[3])).find(f".//{P}pic")
expect(picture.find(f".//{P}cNvPr").get("descr") == "A gradient", "full: the picture's description")
ext = picture.find(f".//{A}ext")
expect(abs(int(ext.get("cx")) / int(ext.get("cy")) - 2) < 0.01, "full: the picture keeps its shape")
table = [["".join(piece.text for piece in cell.iter(A + "t")) for cell in row.iter(A + "tc")] for row in tree.fromstring(archive.read(slides[3])).iter(A + "tr")]
expect(table == [["Name", "Value"], ["Alpha", "1"], ["Beta", "22"]], f"full: the table, got {table}")
for part in slides:
    for x, y, width, height in boxes(archive, part):
        expect(x >= 0 and y >= 0 and x + width <= 12192000 + 9 and y + height <= 6858000 + 9, f"full: a shape of {part} leaves the slide")
expect(b'"00AA88"' in archive.read("ppt/theme/theme1.xml"), "full: the accent is in the theme")

chart = tree.fromstring(archive.read("ppt/charts/chart1.xml"))
series = {}
for entry in chart.iter(C + "ser"):
    name = entry.find(f"{C}tx//{C}v").text
    series[name] = {int(point.get("idx")): float(point.find(C + "v").text) for point in entry.find(C + "val").iter(C + "pt")}
expect(series == {"Pilot": {0: 14.5, 2: 9.0}, "Control": {0: 14.0, 1: 13.0, 2: -2.0}}, f"full: chart numbers and the gap, got {series}")
book = zipfile.ZipFile(io.BytesIO(archive.read("ppt/embeddings/chart1.xlsx")))
cells = {cell.get("r"): (cell.findtext(S + "v") or cell.findtext(f"{S}is/{S}t")) for cell in tree.fromstring(book.read("xl/worksheets/sheet1.xml")).iter(S + "c")}
expect(cells["B2"] == "14.5" and "B3" not in cells and cells["C4"] == "-2" and cells["A2"] == "Q1", f"full: the workbook holds the same numbers, got {cells}")

archive, names = open_package("control.pptx")
expect("control  characters" in texts(archive, "ppt/slides/slide1.xml"), "control characters are left out")
archive, names = open_package("example.pptx")
expect(len([name for name in names if name.startswith("ppt/charts/chart")]) == 2, "example: two charts")


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.stack, self.sections, self.bad, self.data = [], 0, [], []

    def handle_starttag(self, tag, attributes):
        if tag == "section":
            self.sections += 1
        for name, value in attributes:
            if name in ("src", "href") and not value.startswith(("data:", "https://example.org", "#")):
                self.bad.append(value)
        if tag not in ("meta", "img", "link", "br", "line", "circle", "path", "rect"):
            self.stack.append(tag)

    def handle_endtag(self, tag):
        if tag in ("line", "circle", "path", "rect"):
            return
        if not self.stack or self.stack.pop() != tag:
            self.bad.append(f"</{tag}>")

    def handle_data(self, data):
        self.data.append(data)


for name, count in (("full.html", 6), ("example.html", 7)):
    page = Page()
    with open(os.path.join(out, name), encoding="utf-8") as handle:
        text = handle.read()
    page.feed(text)
    expect(page.sections == count and not page.bad and not page.stack, f"{name}: {page.sections} sections, {page.bad}, open {page.stack}")
    expect("VAR_" not in text, f"{name}: a colour was not filled in")
with open(os.path.join(out, "full.html"), encoding="utf-8") as handle:
    text = handle.read()
expect("second level &lt;tag&gt;" in text and "<tag>" not in text, "full.html: text is escaped")
expect(text.count("data:image/png;base64,") == 2, "full.html: pictures are inside")
expect("<title>Control: -2%</title>" in text, "full.html: the chart's numbers")
print(f"ok   {checks} facts of the decks")
