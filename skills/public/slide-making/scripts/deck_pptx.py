"""Writes a deck as a .pptx package with its own code: placeholders, tables, pictures, charts, notes.

Invariant: the same outline gives the same bytes, and every part is listed in [Content_Types].xml.
"""
import zipfile
from xml.sax.saxutils import escape, quoteattr

from deck_layout import FIGURE, QUOTE, on, palette, place, series_colours, table_points
from outline import plain, runs
from pptx_chart import chart_part, workbook
from pptx_parts import (GROUP, HEAD, LAYOUTS, NS, app, core, emu, fill, layout, master, notes_master, placeholder, relationships, scheme,
                        theme, xfrm)

_TYPES = {
    "presentation": "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml",
    "slide": "application/vnd.openxmlformats-officedocument.presentationml.slide+xml",
    "slideLayout": "application/vnd.openxmlformats-officedocument.presentationml.slideLayout+xml",
    "slideMaster": "application/vnd.openxmlformats-officedocument.presentationml.slideMaster+xml",
    "notesMaster": "application/vnd.openxmlformats-officedocument.presentationml.notesMaster+xml",
    "notesSlide": "application/vnd.openxmlformats-officedocument.presentationml.notesSlide+xml",
    "theme": "application/vnd.openxmlformats-officedocument.theme+xml",
    "chart": "application/vnd.openxmlformats-officedocument.drawingml.chart+xml",
}


class _SlideWriter:
    """Collects the shapes and relationships of one slide."""

    def __init__(self, package, number, slide):
        self.package, self.number, self.slide = package, number, slide
        self.shapes, self.rels, self.next_id = [], [], 2

    def shape_id(self):
        self.next_id += 1
        return self.next_id - 1

    def relate(self, kind, target, external=False):
        name = f"rId{len(self.rels) + 1}"
        self.rels.append((name, kind, target) + (("External",) if external else ()))
        return name

    def runs(self, pieces, size, bold=False, colour=None):
        out = ""
        for piece in pieces:
            inner = scheme("tx1") if colour is None else fill(colour)
            if piece.get("code"):
                inner += '<a:latin typeface="Courier New"/><a:cs typeface="Courier New"/>'
            if piece.get("link") and piece["link"].startswith(("http://", "https://", "mailto:")):
                inner += f'<a:hlinkClick r:id="{self.relate("hyperlink", piece["link"], True)}"/>'
            flags = (' b="1"' if bold or piece.get("bold") else "") + (' i="1"' if piece.get("italic") else "")
            out += f'<a:r><a:rPr lang="{self.package.lang}" sz="{int(size * 100)}"{flags} dirty="0">{inner}</a:rPr><a:t>{escape(piece["text"])}</a:t></a:r>'
        return out

    def text_box(self, name, box, body, anchor="t", ground=None, inset=0.0):
        side = emu(inset)
        paint = fill(ground) if ground else "<a:noFill/>"
        self.shapes.append(
            f'<p:sp><p:nvSpPr><p:cNvPr id="{self.shape_id()}" name={quoteattr(name)}/><p:cNvSpPr txBox="1"/><p:nvPr/></p:nvSpPr><p:spPr>{xfrm(*box)}'
            f'<a:prstGeom prst="rect"><a:avLst/></a:prstGeom>{paint}</p:spPr><p:txBody><a:bodyPr wrap="square" lIns="{side}" tIns="{side}" rIns="{side}" bIns="{side}" anchor="{anchor}"><a:noAutofit/></a:bodyPr>'
            f"<a:lstStyle/>{body}</p:txBody></p:sp>")


class _Package:
    """The zip under construction."""

    def __init__(self, deck):
        self.deck, self.colours, self.series = deck, palette(deck), series_colours(deck)
        self.lang = deck.meta.get("lang", "en-US")
        self.parts, self.overrides, self.extensions = {}, [], {"rels", "xml"}
        self.charts = self.pictures = 0
        self.media = {}

    def add(self, name, data, kind=None):
        self.parts[name] = data
        if kind:
            self.overrides.append((name, _TYPES.get(kind, kind)))


def write_pptx(deck, path):
    """Writes the deck; gives the number of slides."""
    package = _Package(deck)
    for at, name in enumerate(LAYOUTS, start=1):
        package.add(f"ppt/slideLayouts/slideLayout{at}.xml", layout(name), "slideLayout")
        package.add(f"ppt/slideLayouts/_rels/slideLayout{at}.xml.rels", relationships([("rId1", "slideMaster", "../slideMasters/slideMaster1.xml")]))
    package.add("ppt/slideMasters/slideMaster1.xml", master(len(LAYOUTS)), "slideMaster")
    links = [(f"rId{at}", "slideLayout", f"../slideLayouts/slideLayout{at}.xml") for at in range(1, len(LAYOUTS) + 1)]
    package.add("ppt/slideMasters/_rels/slideMaster1.xml.rels", relationships(links + [(f"rId{len(LAYOUTS) + 1}", "theme", "../theme/theme1.xml")]))
    package.add("ppt/theme/theme1.xml", theme(package.colours, package.series), "theme")
    with_notes = any(slide.notes for slide in deck.slides)
    if with_notes:
        package.add("ppt/theme/theme2.xml", theme(dict(package.colours, ink="1B2330", paper="FFFFFF"), package.series), "theme")
        package.add("ppt/notesMasters/notesMaster1.xml", notes_master(), "notesMaster")
        package.add("ppt/notesMasters/_rels/notesMaster1.xml.rels", relationships([("rId1", "theme", "../theme/theme2.xml")]))
    for number, slide in enumerate(deck.slides, start=1):
        _write_slide(package, number, slide)
    _write_presentation(package, with_notes)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(package.parts, key=lambda part: (part != "[Content_Types].xml", part)):
            info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, package.parts[name])
    return len(deck.slides)


def _write_presentation(package, with_notes):
    count = len(package.deck.slides)
    links = [("rId1", "slideMaster", "slideMasters/slideMaster1.xml"), ("rId2", "theme", "theme/theme1.xml")]
    links += [(f"rId{at + 10}", "slide", f"slides/slide{at}.xml") for at in range(1, count + 1)]
    notes = ""
    if with_notes:
        links.append(("rId3", "notesMaster", "notesMasters/notesMaster1.xml"))
        notes = '<p:notesMasterIdLst><p:notesMasterId r:id="rId3"/></p:notesMasterIdLst>'
    ids = "".join(f'<p:sldId id="{255 + at}" r:id="rId{at + 10}"/>' for at in range(1, count + 1))
    package.add("ppt/presentation.xml", HEAD + f'<p:presentation {NS} saveSubsetFonts="1"><p:sldMasterIdLst><p:sldMasterId id="2147483648" r:id="rId1"/></p:sldMasterIdLst>{notes}'
                f'<p:sldIdLst>{ids}</p:sldIdLst><p:sldSz cx="12192000" cy="6858000"/><p:notesSz cx="6858000" cy="9144000"/></p:presentation>', "presentation")
    package.add("ppt/_rels/presentation.xml.rels", relationships(links))
    package.add("docProps/core.xml", core(package.deck.meta, "2020-01-01T00:00:00Z"), "application/vnd.openxmlformats-package.core-properties+xml")
    package.add("docProps/app.xml", app(count), "application/vnd.openxmlformats-officedocument.extended-properties+xml")
    package.add("_rels/.rels", relationships([("rId1", "officeDocument", "ppt/presentation.xml"),
                                              ("rId2", "http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties", "docProps/core.xml"),
                                              ("rId3", "extended-properties", "docProps/app.xml")]))
    kinds = {"rels": "application/vnd.openxmlformats-package.relationships+xml", "xml": "application/xml", "png": "image/png", "jpeg": "image/jpeg", "gif": "image/gif",
             "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"}
    defaults = "".join(f'<Default Extension="{name}" ContentType="{kinds[name]}"/>' for name in sorted(package.extensions))
    overrides = "".join(f'<Override PartName="/{name}" ContentType="{kind}"/>' for name, kind in package.overrides)
    package.add("[Content_Types].xml", HEAD + f'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">{defaults}{overrides}</Types>')


def _write_slide(package, number, slide):
    writer = _SlideWriter(package, number, slide)
    two = slide.kind == "content" and len([column for column in slide.columns if column]) == 2
    which = {"title": 1, "section": 2}.get(slide.kind, 4 if two else 3)
    writer.relate("slideLayout", f"../slideLayouts/slideLayout{which}.xml")
    if slide.kind == "content":
        _content(writer)
    else:
        _cover(writer)
    if slide.notes:
        writer.relate("notesSlide", f"../notesSlides/notesSlide{number}.xml")
        _write_notes(package, number, slide)
    package.add(f"ppt/slides/slide{number}.xml", HEAD + f'<p:sld {NS}><p:cSld><p:spTree>{GROUP}{"".join(writer.shapes)}</p:spTree></p:cSld><p:clrMapOvr><a:masterClrMapping/></p:clrMapOvr></p:sld>', "slide")
    package.add(f"ppt/slides/_rels/slide{number}.xml.rels", relationships(writer.rels))


def _write_notes(package, number, slide):
    body = "".join(f'<a:p><a:r><a:rPr lang="{package.lang}"/><a:t>{escape(line)}</a:t></a:r></a:p>' for line in slide.notes)
    picture = '<p:sp><p:nvSpPr><p:cNvPr id="2" name="Slide"/><p:cNvSpPr><a:spLocks noGrp="1" noRot="1" noChangeAspect="1"/></p:cNvSpPr><p:nvPr><p:ph type="sldImg"/></p:nvPr></p:nvSpPr><p:spPr/></p:sp>'
    package.add(f"ppt/notesSlides/notesSlide{number}.xml", HEAD + f'<p:notes {NS}><p:cSld><p:spTree>{GROUP}{picture}{placeholder(3, "Notes", "body", None, body, 1)}</p:spTree></p:cSld><p:clrMapOvr><a:masterClrMapping/></p:clrMapOvr></p:notes>', "notesSlide")
    package.add(f"ppt/notesSlides/_rels/notesSlide{number}.xml.rels", relationships([("rId1", "notesMaster", "../notesMasters/notesMaster1.xml"), ("rId2", "slide", f"../slides/slide{number}.xml")]))


def _cover(writer):
    deck, slide, colours = writer.package.deck, writer.slide, writer.package.colours
    first = slide.kind == "title"
    ink = colours["cover_ink"] if first else on(colours["accent"])
    soft = colours["cover_soft"] if first else ink
    writer.shapes.append(placeholder(writer.shape_id(), "Title", "ctrTitle" if first else "title", None, f"<a:p>{writer.runs(runs(slide.title), 44 if len(slide.title) < 50 else 36, True, ink)}</a:p>"))
    if first:
        lines = [(deck.meta.get("subtitle", ""), 22, ink), (" · ".join(filter(None, (deck.meta.get("author"), deck.meta.get("date")))), 16, soft)]
    else:
        lines = [(plain(block.get("runs", [])), 20, soft) for block in slide.blocks() if block["kind"] == "text"]
    body = "".join(f'<a:p><a:pPr marL="0" indent="0"><a:spcBef><a:spcPts val="900"/></a:spcBef><a:buNone/></a:pPr>{writer.runs([{"text": words}], size, False, colour)}</a:p>' for words, size, colour in lines if words)
    if body:
        writer.shapes.append(placeholder(writer.shape_id(), "Subtitle", "subTitle" if first else "body", None, body, 1))


def _content(writer):
    deck, slide, colours = writer.package.deck, writer.slide, writer.package.colours
    writer.shapes.append(placeholder(writer.shape_id(), "Title", "title", None, f"<a:p>{writer.runs(runs(slide.title), 28, True)}</a:p>"))
    placed, _ = place(slide)
    filled = set()
    for kind, blocks, x, y, width, height, points, column in placed:
        box = (x, y, width, height)
        if kind == "text":
            body = "".join(_paragraphs(writer, block, points) for block in blocks)
            if column not in filled and column < 2:
                filled.add(column)
                writer.shapes.append(placeholder(writer.shape_id(), f"Body {column + 1}", None, box, body, column + 1))
            else:
                writer.text_box("Text", box, body)
        else:
            {"image": _picture, "table": _table, "code": _code, "quote": _quote, "figure": _figure, "chart": _chart}[kind](writer, blocks[0], box)
    footer = deck.meta.get("footer", deck.meta.get("title", ""))
    small = lambda inner: f"<a:p>{inner}</a:p>"  # noqa: E731
    if footer:
        writer.shapes.append(placeholder(writer.shape_id(), "Footer", "ftr", None, small(writer.runs([{"text": footer}], 11, False, colours["soft"])), 10))
    number = f'<a:fld id="{{B6F15528-21DE-4FAA-801E-634DDDAF4B2B}}" type="slidenum"><a:rPr lang="{writer.package.lang}" sz="1100">{fill(colours["soft"])}</a:rPr><a:t>{writer.number}</a:t></a:fld>'
    writer.shapes.append(placeholder(writer.shape_id(), "Slide number", "sldNum", None, f'<a:p><a:pPr algn="r"/>{number}</a:p>', 11))


def _paragraphs(writer, block, points):
    if block["kind"] == "text":
        return f'<a:p><a:pPr marL="0" indent="0"><a:buNone/></a:pPr>{writer.runs(block["runs"], points)}</a:p>'
    out = ""
    for item in block["items"]:
        size = points - 2 * item["level"]
        if item["ordered"]:
            mark = f'<a:pPr marL="{342900 + 320040 * item["level"]}" indent="-342900" lvl="{item["level"]}"><a:buFont typeface="+mj-lt"/><a:buAutoNum type="arabicPeriod"/></a:pPr>'
        else:
            mark = f'<a:pPr lvl="{item["level"]}"/>' if item["level"] else ""
        out += f'<a:p>{mark}{writer.runs(item["runs"], size)}</a:p>'
    return out


def _picture(writer, block, box):
    if not block["file"]:
        return
    if block["format"] == "svg":
        writer.text_box("Picture", box, f'<a:p>{writer.runs([{"text": block["alt"] or block["path"], "italic": True}], 14)}</a:p>', "ctr", writer.package.colours["tint"], 0.2)
        return
    package = writer.package
    if block["file"] not in package.media:
        package.pictures += 1
        package.media[block["file"]] = f"image{package.pictures}.{block['format']}"
        with open(block["file"], "rb") as handle:
            package.add(f"ppt/media/{package.media[block['file']]}", handle.read())
        package.extensions.add(block["format"])
    name = writer.relate("image", f"../media/{package.media[block['file']]}")
    x, y, width, height = box
    share = min(width / block["size"][0], height / block["size"][1])
    inner = (block["size"][0] * share, block["size"][1] * share)
    spot = (x + (width - inner[0]) / 2, y + (height - inner[1]) / 2, *inner)
    writer.shapes.append(f'<p:pic><p:nvPicPr><p:cNvPr id="{writer.shape_id()}" name="Picture" descr={quoteattr(block["alt"])}/><p:cNvPicPr><a:picLocks noChangeAspect="1"/></p:cNvPicPr><p:nvPr/></p:nvPicPr>'
                         f'<p:blipFill><a:blip r:embed="{name}"/><a:stretch><a:fillRect/></a:stretch></p:blipFill><p:spPr>{xfrm(*spot)}<a:prstGeom prst="rect"><a:avLst/></a:prstGeom></p:spPr></p:pic>')


def _table(writer, block, box):
    colours, rows = writer.package.colours, block["rows"]
    columns, size = len(rows[0]), table_points(block)
    weights = [max(3, min(34, max(len(plain(row[at])) for row in rows))) for at in range(columns)]
    widths = [box[2] * weight / sum(weights) for weight in weights]
    grid = "".join(f'<a:gridCol w="{emu(width)}"/>' for width in widths)
    line = lambda side, colour, size: f'<a:{side} w="{size}">{fill(colour)}</a:{side}>'  # noqa: E731
    none = "".join(f'<a:{side} w="0"><a:noFill/></a:{side}>' for side in ("lnL", "lnR"))
    out = ""
    for at, row in enumerate(rows):
        cells = ""
        for cell, side in zip(row, block["align"]):
            align = {"right": "r", "center": "ctr"}.get(side, "l")
            rule = line("lnT", colours["accent"] if at == 0 else colours["tint"], 0 if at == 0 else 9525) + line("lnB", colours["accent"] if at == 0 else colours["tint"], 19050 if at == 0 else 9525)
            cells += (f'<a:tc><a:txBody><a:bodyPr/><a:lstStyle/><a:p><a:pPr algn="{align}"/>{writer.runs(cell, size, at == 0)}<a:endParaRPr sz="{size * 100}"/></a:p></a:txBody>'
                      f'<a:tcPr marL="91440" marR="91440" marT="64008" marB="64008" anchor="ctr">{none}{rule}<a:noFill/></a:tcPr></a:tc>')
        out += f'<a:tr h="{emu(box[3] / len(rows))}">{cells}</a:tr>'
    writer.shapes.append(f'<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="{writer.shape_id()}" name="Table"/><p:cNvGraphicFramePr><a:graphicFrameLocks noGrp="1"/></p:cNvGraphicFramePr><p:nvPr/></p:nvGraphicFramePr>{xfrm(*box, tag="p")}'
                         f'<a:graphic><a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/table"><a:tbl><a:tblPr firstRow="1"/><a:tblGrid>{grid}</a:tblGrid>{out}</a:tbl></a:graphicData></a:graphic></p:graphicFrame>')


def _code(writer, block, box):
    body = "".join(f'<a:p>{writer.runs([{"text": line, "code": True}], 14) if line else ""}<a:endParaRPr sz="1400"/></a:p>' for line in block["lines"])
    writer.text_box("Code", box, body or "<a:p/>", ground=writer.package.colours["tint"], inset=0.17)


def _quote(writer, block, box):
    colours, body = writer.package.colours, ""
    for line in block["lines"]:
        by = line.startswith(("—", "--"))
        body += f'<a:p><a:pPr><a:spcBef><a:spcPts val="{900 if by else 0}"/></a:spcBef></a:pPr>{writer.runs(runs(line.lstrip("-— ") if by else line), 18 if by else QUOTE, False, colours["soft"] if by else None)}</a:p>'
    writer.text_box("Quote", (box[0] + 0.35, *box[1:2], box[2] - 0.35, box[3]), body, "ctr")
    writer.text_box("Bar", (box[0], box[1], 0.06, box[3]), "<a:p/>", ground=colours["accent"])


def _figure(writer, block, box):
    accent = writer.package.colours["accent"]
    body = f'<a:p>{writer.runs([{"text": block["figure"]}], FIGURE, True, accent)}</a:p><a:p>{writer.runs(block["runs"], 22)}</a:p>'
    writer.text_box("Figure", box, body)


def _chart(writer, block, box):
    package = writer.package
    if not block["series"]:
        return
    package.charts += 1
    at = package.charts
    package.add(f"ppt/charts/chart{at}.xml", chart_part(block, package.colours, package.series), "chart")
    package.add(f"ppt/charts/_rels/chart{at}.xml.rels", relationships([("rId1", "package", f"../embeddings/chart{at}.xlsx")]))
    package.add(f"ppt/embeddings/chart{at}.xlsx", workbook(block))
    package.extensions.add("xlsx")
    name = writer.relate("chart", f"../charts/chart{at}.xml")
    words = f"{block['chart']} chart of " + ", ".join(series for series, _ in block["series"])
    writer.shapes.append(f'<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="{writer.shape_id()}" name="Chart" descr={quoteattr(words)}/><p:cNvGraphicFramePr/><p:nvPr/></p:nvGraphicFramePr>{xfrm(*box, tag="p")}'
                         f'<a:graphic><a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/chart"><c:chart xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" r:id="{name}"/></a:graphicData></a:graphic></p:graphicFrame>')
