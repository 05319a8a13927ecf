"""Writes a chart as a native, editable part of a .pptx, with its numbers in a small workbook inside.

Invariant: the numbers shown (the cache) and the numbers in the workbook are the same.
"""
import io
import zipfile
from xml.sax.saxutils import escape

from pptx_parts import HEAD, relationships

_C = ('xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
      'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"')
_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def _letter(at):
    return chr(ord("A") + at) if at < 26 else chr(ord("A") + at // 26 - 1) + chr(ord("A") + at % 26)


def _short(value):
    return f"{value:.10g}"


def chart_part(block, colours, series_colours):
    """The chart's XML; its relationship rId1 is the workbook."""
    count, line = len(block["categories"]), block["chart"] == "line"
    words = f'<c:txPr><a:bodyPr/><a:lstStyle/><a:p><a:pPr><a:defRPr sz="1200"><a:solidFill><a:srgbClr val="{colours["soft"]}"/></a:solidFill></a:defRPr></a:pPr><a:endParaRPr/></a:p></c:txPr>'
    form = {"%": '0"%"', "": "#,##0.##"}.get(block["unit"], f'#,##0.## "{block["unit"]}"' if block["unit"] not in "$€£¥" else f'"{block["unit"]}"#,##0.##')
    if all(value is None or value == int(value) for _, values in block["series"] for value in values):
        form = form.replace(".##", "")
    form = escape(form, {'"': "&quot;"})
    rows = ""
    for at, (name, values) in enumerate(block["series"]):
        paint = f'<a:solidFill><a:srgbClr val="{series_colours[at % len(series_colours)]}"/></a:solidFill>'
        look = f'<c:spPr><a:ln w="31750" cap="rnd">{paint}<a:round/></a:ln></c:spPr><c:marker><c:symbol val="circle"/><c:size val="6"/><c:spPr>{paint}<a:ln><a:noFill/></a:ln></c:spPr></c:marker>' if line else f"<c:spPr>{paint}</c:spPr><c:invertIfNegative val=\"0\"/>"
        labels = ""
        if not line and len(block["series"]) == 1:
            labels = f'<c:dLbls><c:numFmt formatCode="{form}" sourceLinked="0"/><c:spPr><a:noFill/><a:ln><a:noFill/></a:ln></c:spPr>{words}<c:showLegendKey val="0"/><c:showVal val="1"/><c:showCatName val="0"/><c:showSerName val="0"/><c:showPercent val="0"/><c:showBubbleSize val="0"/></c:dLbls>'
        cells = "".join(f'<c:pt idx="{i}"><c:v>{escape(label)}</c:v></c:pt>' for i, label in enumerate(block["categories"]))
        points = "".join(f'<c:pt idx="{i}"><c:v>{_short(value)}</c:v></c:pt>' for i, value in enumerate(values) if value is not None)
        column = _letter(at + 1)
        rows += (f'<c:ser><c:idx val="{at}"/><c:order val="{at}"/><c:tx><c:strRef><c:f>Sheet1!${column}$1</c:f><c:strCache><c:ptCount val="1"/><c:pt idx="0"><c:v>{escape(name)}</c:v></c:pt></c:strCache></c:strRef></c:tx>'
                 f'{look}{labels}<c:cat><c:strRef><c:f>Sheet1!$A$2:$A${count + 1}</c:f><c:strCache><c:ptCount val="{count}"/>{cells}</c:strCache></c:strRef></c:cat>'
                 f'<c:val><c:numRef><c:f>Sheet1!${column}$2:${column}${count + 1}</c:f><c:numCache><c:formatCode>General</c:formatCode><c:ptCount val="{count}"/>{points}</c:numCache></c:numRef></c:val>'
                 + ('<c:smooth val="0"/>' if line else "") + "</c:ser>")
    lying = block["chart"] == "bar"
    if line:
        plot = f'<c:lineChart><c:grouping val="standard"/><c:varyColors val="0"/>{rows}<c:marker val="1"/><c:axId val="111"/><c:axId val="222"/></c:lineChart>'
    else:
        plot = f'<c:barChart><c:barDir val="{"bar" if lying else "col"}"/><c:grouping val="clustered"/><c:varyColors val="0"/>{rows}<c:gapWidth val="60"/><c:axId val="111"/><c:axId val="222"/></c:barChart>'
    rule = f'<c:spPr><a:ln w="9525"><a:solidFill><a:srgbClr val="{colours["soft"]}"/></a:solidFill></a:ln></c:spPr>'
    grid = f'<c:majorGridlines><c:spPr><a:ln w="6350"><a:solidFill><a:srgbClr val="{colours["tint"]}"/></a:solidFill></a:ln></c:spPr></c:majorGridlines>'
    axes = (f'<c:catAx><c:axId val="111"/><c:scaling><c:orientation val="{"maxMin" if lying else "minMax"}"/></c:scaling><c:delete val="0"/><c:axPos val="{"l" if lying else "b"}"/>'
            f'<c:numFmt formatCode="General" sourceLinked="0"/><c:majorTickMark val="none"/><c:minorTickMark val="none"/><c:tickLblPos val="low"/>{rule}{words}<c:crossAx val="222"/><c:crosses val="autoZero"/></c:catAx>'
            f'<c:valAx><c:axId val="222"/><c:scaling><c:orientation val="minMax"/></c:scaling><c:delete val="0"/><c:axPos val="{"b" if lying else "l"}"/>{grid}'
            f'<c:numFmt formatCode="{form}" sourceLinked="0"/><c:majorTickMark val="none"/><c:minorTickMark val="none"/><c:tickLblPos val="nextTo"/><c:spPr><a:ln><a:noFill/></a:ln></c:spPr>{words}'
            f'<c:crossAx val="111"/><c:crosses val="{"max" if lying else "autoZero"}"/></c:valAx>')
    legend = f'<c:legend><c:legendPos val="t"/><c:overlay val="0"/>{words}</c:legend>' if len(block["series"]) > 1 else ""
    return HEAD + (f'<c:chartSpace {_C}><c:roundedCorners val="0"/><c:chart><c:autoTitleDeleted val="1"/><c:plotArea><c:layout/>{plot}{axes}</c:plotArea>{legend}'
                   '<c:plotVisOnly val="1"/><c:dispBlanksAs val="gap"/></c:chart><c:externalData r:id="rId1"><c:autoUpdate val="0"/></c:externalData></c:chartSpace>')


def workbook(block):
    """The bytes of an .xlsx with the chart's table."""
    def cell(column, row, value):
        place = f"{_letter(column)}{row}"
        if isinstance(value, str):
            return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
        return f'<c r="{place}"><v>{_short(value)}</v></c>' if value is not None else ""

    table = [[""] + [name for name, _ in block["series"]]]
    table += [[label] + [values[at] for _, values in block["series"]] for at, label in enumerate(block["categories"])]
    rows = "".join(f'<row r="{at}">' + "".join(cell(column, at, value) for column, value in enumerate(row)) + "</row>" for at, row in enumerate(table, start=1))
    parts = {
        "[Content_Types].xml": HEAD + '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>'
        '<Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>',
        "_rels/.rels": relationships([("rId1", "officeDocument", "xl/workbook.xml")]),
        "xl/workbook.xml": HEAD + f'<workbook xmlns="{_SHEET}" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="Sheet1" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": relationships([("rId1", "worksheet", "worksheets/sheet1.xml")]),
        "xl/worksheets/sheet1.xml": HEAD + f'<worksheet xmlns="{_SHEET}"><sheetData>{rows}</sheetData></worksheet>',
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), text)
    return out.getvalue()
