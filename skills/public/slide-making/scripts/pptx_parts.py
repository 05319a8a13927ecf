"""The parts of a .pptx that do not depend on its slides: theme, master, layouts, properties.

Invariant: every part is well-formed XML and every relationship it names exists in the package.
"""
from xml.sax.saxutils import escape

HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
NS = ('xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
      'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
      'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"')
REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
GROUP = ('<p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="0" cy="0"/>'
         '<a:chOff x="0" y="0"/><a:chExt cx="0" cy="0"/></a:xfrm></p:grpSpPr>')
LAYOUTS = ("Title", "Section", "Content", "Two columns")
FONT = "Arial"


def emu(inches):
    """Inches in the format's own unit."""
    return int(round(inches * 914400))


def xfrm(x, y, width, height, tag="a"):
    return f'<{tag}:xfrm><a:off x="{emu(x)}" y="{emu(y)}"/><a:ext cx="{emu(width)}" cy="{emu(height)}"/></{tag}:xfrm>'


def fill(colour):
    return f'<a:solidFill><a:srgbClr val="{colour}"/></a:solidFill>'


def scheme(name):
    return f'<a:solidFill><a:schemeClr val="{name}"/></a:solidFill>'


def relationships(entries):
    """A .rels part from (id, type, target) or (id, type, target, 'External')."""
    rows = "".join(f'<Relationship Id="{entry[0]}" Type="{entry[1] if entry[1].startswith("http") else REL + entry[1]}" Target="{escape(entry[2], {chr(34): "&quot;"})}"'
                   + (' TargetMode="External"' if len(entry) > 3 else "") + "/>" for entry in entries)
    return HEAD + f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{rows}</Relationships>'


def theme(colours, series):
    slots = [("dk1", colours["ink"]), ("lt1", colours["paper"]), ("dk2", colours["cover"]), ("lt2", colours["tint"])]
    slots += [(f"accent{at + 1}", colour) for at, colour in enumerate(series)] + [("hlink", colours["accent"]), ("folHlink", colours["soft"])]
    listed = "".join(f'<a:{name}><a:srgbClr val="{colour}"/></a:{name}>' for name, colour in slots)
    font = f'<a:latin typeface="{FONT}"/><a:ea typeface=""/><a:cs typeface=""/>'
    fills = "<a:solidFill><a:schemeClr val=\"phClr\"/></a:solidFill>" * 3
    lines = '<a:ln w="9525"><a:solidFill><a:schemeClr val="phClr"/></a:solidFill></a:ln>' * 3
    return HEAD + (f'<a:theme {NS.split(" ")[0]} name="hart"><a:themeElements><a:clrScheme name="hart">{listed}</a:clrScheme>'
                   f'<a:fontScheme name="hart"><a:majorFont>{font}</a:majorFont><a:minorFont>{font}</a:minorFont></a:fontScheme>'
                   f'<a:fmtScheme name="hart"><a:fillStyleLst>{fills}</a:fillStyleLst><a:lnStyleLst>{lines}</a:lnStyleLst>'
                   f'<a:effectStyleLst>{"<a:effectStyle><a:effectLst/></a:effectStyle>" * 3}</a:effectStyleLst><a:bgFillStyleLst>{fills}</a:bgFillStyleLst>'
                   "</a:fmtScheme></a:themeElements></a:theme>")


def placeholder(number, name, kind, box, body="", index=None, extra=""):
    """A placeholder shape; kind is title, body, ctrTitle, subTitle, sldNum, ftr."""
    at = (f' type="{kind}"' if kind else "") + (f' idx="{index}"' if index is not None else "")
    position = f"<p:spPr>{xfrm(*box)}</p:spPr>" if box else "<p:spPr/>"
    return (f'<p:sp><p:nvSpPr><p:cNvPr id="{number}" name="{name}"/><p:cNvSpPr><a:spLocks noGrp="1"/></p:cNvSpPr><p:nvPr><p:ph{at}/></p:nvPr></p:nvSpPr>'
            f'{position}<p:txBody><a:bodyPr{extra}/><a:lstStyle/>{body or "<a:p><a:endParaRPr/></a:p>"}</p:txBody></p:sp>')


def bar(number, box, colour):
    """A plain filled rectangle."""
    return (f'<p:sp><p:nvSpPr><p:cNvPr id="{number}" name="Bar {number}"/><p:cNvSpPr/><p:nvPr userDrawn="1"/></p:nvSpPr><p:spPr>{xfrm(*box)}'
            f'<a:prstGeom prst="rect"><a:avLst/></a:prstGeom>{scheme(colour)}<a:ln><a:noFill/></a:ln></p:spPr></p:sp>')


TITLE_BOX = (0.75, 0.55, 11.833, 0.95)
NUMBER_BOX = (11.583, 6.95, 1.0, 0.3)
FOOTER_BOX = (0.75, 6.95, 9.0, 0.3)


def master(count):
    """The slide master with title, body, footer and slide number."""
    small = f'<a:lstStyle><a:lvl1pPr><a:defRPr sz="1100">{scheme("tx1")}<a:latin typeface="+mn-lt"/></a:defRPr></a:lvl1pPr></a:lstStyle>'
    levels = "".join(
        f'<a:lvl{level}pPr marL="{228600 + 320040 * (level - 1)}" indent="-228600" algn="l"><a:lnSpc><a:spcPct val="100000"/></a:lnSpc><a:spcBef><a:spcPts val="600"/></a:spcBef>'
        f'<a:buClr><a:schemeClr val="accent1"/></a:buClr><a:buFont typeface="Arial"/><a:buChar char="{"•" if level == 1 else "–"}"/>'
        f'<a:defRPr sz="{2000 - 200 * (level - 1)}">{scheme("tx1")}<a:latin typeface="+mn-lt"/></a:defRPr></a:lvl{level}pPr>' for level in (1, 2, 3))
    other = f'<a:lvl1pPr><a:defRPr sz="1800">{scheme("tx1")}<a:latin typeface="+mn-lt"/></a:defRPr></a:lvl1pPr>'
    number = '<a:p><a:pPr algn="r"/><a:fld id="{B6F15528-21DE-4FAA-801E-634DDDAF4B2B}" type="slidenum"><a:rPr lang="en-US" sz="1100"/><a:t>‹#›</a:t></a:fld></a:p>'
    shapes = placeholder(2, "Title", "title", TITLE_BOX, "<a:p><a:r><a:rPr/><a:t>Title</a:t></a:r></a:p>", extra=' lIns="0" tIns="0" rIns="0" bIns="0" anchor="b"')
    shapes += placeholder(3, "Body", "body", (0.75, 1.75, 11.833, 4.95), "<a:p><a:r><a:rPr/><a:t>Text</a:t></a:r></a:p>", 1, ' lIns="0" tIns="0" rIns="0" bIns="0"')
    shapes += placeholder(4, "Footer", "ftr", FOOTER_BOX, index=3, extra=' lIns="0" anchor="ctr"').replace("<a:lstStyle/>", small)
    shapes += placeholder(5, "Slide number", "sldNum", NUMBER_BOX, number, 4, ' rIns="0" anchor="ctr"').replace("<a:lstStyle/>", small)
    ids = "".join(f'<p:sldLayoutId id="{2147483649 + at}" r:id="rId{at + 1}"/>' for at in range(count))
    return HEAD + (f'<p:sldMaster {NS}><p:cSld><p:bg><p:bgPr>{scheme("bg1")}<a:effectLst/></p:bgPr></p:bg><p:spTree>{GROUP}{shapes}</p:spTree></p:cSld>'
                   '<p:clrMap bg1="lt1" tx1="dk1" bg2="lt2" tx2="dk2" accent1="accent1" accent2="accent2" accent3="accent3" accent4="accent4" accent5="accent5" accent6="accent6" hlink="hlink" folHlink="folHlink"/>'
                   f"<p:sldLayoutIdLst>{ids}</p:sldLayoutIdLst>"
                   f'<p:txStyles><p:titleStyle><a:lvl1pPr algn="l"><a:lnSpc><a:spcPct val="95000"/></a:lnSpc><a:defRPr sz="2800" b="1">{scheme("tx1")}<a:latin typeface="+mj-lt"/></a:defRPr></a:lvl1pPr></p:titleStyle>'
                   f"<p:bodyStyle>{levels}</p:bodyStyle><p:otherStyle>{other}</p:otherStyle></p:txStyles></p:sldMaster>")


def layout(name):
    """One slide layout: cover, section, content, or two columns."""
    flat = ' lIns="0" tIns="0" rIns="0" bIns="0"'
    if name in ("Title", "Section"):
        ground = scheme("tx2") if name == "Title" else scheme("accent1")
        shapes = placeholder(2, "Title", "ctrTitle" if name == "Title" else "title", (1.0, 2.0 if name == "Title" else 2.4, 11.0, 1.9), extra=flat + ' anchor="b"')
        shapes += placeholder(3, "Subtitle", "subTitle" if name == "Title" else "body", (1.0, 4.5, 11.0, 1.5), index=1, extra=flat)
        back = f"<p:bg><p:bgPr>{ground}<a:effectLst/></p:bgPr></p:bg>"
        kind = ' type="title"' if name == "Title" else ' type="secHead"'
        decoration = bar(9, (1.0, 4.12, 0.9, 0.08), "accent1") if name == "Title" else ""
    else:
        back, kind, decoration = "", ' type="obj"' if name == "Content" else ' type="twoObj"', bar(9, (0.75, 0.36, 0.6, 0.07), "accent1")
        shapes = placeholder(2, "Title", "title", TITLE_BOX, extra=flat + ' anchor="b"')
        boxes = [(0.75, 1.75, 11.833, 4.95)] if name == "Content" else [(0.75, 1.75, 5.667, 4.95), (6.917, 1.75, 5.667, 4.95)]
        for at, box in enumerate(boxes):
            shapes += placeholder(3 + at, f"Body {at + 1}", None, box, index=at + 1, extra=flat)
        shapes += placeholder(6, "Footer", "ftr", FOOTER_BOX, index=10, extra=' lIns="0" anchor="ctr"')
        shapes += placeholder(7, "Slide number", "sldNum", NUMBER_BOX, index=11, extra=' rIns="0" anchor="ctr"')
    return HEAD + (f'<p:sldLayout {NS}{kind} preserve="1"><p:cSld name="{name}">{back}<p:spTree>{GROUP}{decoration}{shapes}</p:spTree></p:cSld>'
                   "<p:clrMapOvr><a:masterClrMapping/></p:clrMapOvr></p:sldLayout>")


def notes_master():
    shapes = ('<p:sp><p:nvSpPr><p:cNvPr id="2" name="Slide"/><p:cNvSpPr><a:spLocks noGrp="1" noRot="1" noChangeAspect="1"/></p:cNvSpPr><p:nvPr><p:ph type="sldImg" idx="2"/></p:nvPr></p:nvSpPr>'
              f'<p:spPr>{xfrm(0.75, 0.9, 6, 3.375)}<a:prstGeom prst="rect"><a:avLst/></a:prstGeom></p:spPr></p:sp>')
    shapes += placeholder(3, "Notes", "body", (0.75, 4.6, 6, 4.5), index=3)
    return HEAD + (f'<p:notesMaster {NS}><p:cSld><p:bg><p:bgPr><a:solidFill><a:srgbClr val="FFFFFF"/></a:solidFill><a:effectLst/></p:bgPr></p:bg><p:spTree>{GROUP}{shapes}</p:spTree></p:cSld>'
                   '<p:clrMap bg1="lt1" tx1="dk1" bg2="lt2" tx2="dk2" accent1="accent1" accent2="accent2" accent3="accent3" accent4="accent4" accent5="accent5" accent6="accent6" hlink="hlink" folHlink="folHlink"/></p:notesMaster>')


def core(meta, stamp):
    return HEAD + ('<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/" '
                   'xmlns:dcterms="http://purl.org/dc/terms/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
                   f'<dc:title>{escape(meta.get("title", ""))}</dc:title><dc:creator>{escape(meta.get("author", ""))}</dc:creator>'
                   f'<dcterms:created xsi:type="dcterms:W3CDTF">{stamp}</dcterms:created><dcterms:modified xsi:type="dcterms:W3CDTF">{stamp}</dcterms:modified></cp:coreProperties>')


def app(slides):
    return HEAD + ('<Properties xmlns="http://schemas.openxmlformats.org/officeDocument/2006/extended-properties"><Application>slide-making</Application>'
                   f"<Slides>{slides}</Slides></Properties>")
