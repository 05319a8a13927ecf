"""Makes input files for check.sh ('make') and checks what the scripts answered ('check').

Invariant: expected numbers are worked out here by other means than the scripts use.
"""
import csv
import json
import os
import statistics
import sys
import zipfile

step, out = sys.argv[1], sys.argv[2]
checks = 0


def expect(good, words):
    global checks
    checks += 1
    if not good:
        sys.exit(f"FAIL {words}")


def near(a, b, words, slack=1e-6):
    expect(a is not None and abs(a - b) <= slack, f"{words}: {a} is not {b}")


def load(name):
    with open(os.path.join(out, name), encoding="utf-8") as handle:
        return json.load(handle)


def rows(name):
    with open(os.path.join(out, name), encoding="utf-8", newline="") as handle:
        return list(csv.reader(handle))


XS = list(range(40))
YS = [3 * x + (x * 7 % 5) for x in XS]


def make():
    s = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    rel = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    sheet = lambda body: f"<worksheet {s}><sheetData>{body}</sheetData></worksheet>"  # noqa: E731
    first = ('<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c><c r="C1" t="inlineStr"><is><t>n</t></is></c><c r="D1" t="inlineStr"><is><t>share</t></is></c><c r="E1" t="inlineStr"><is><t>ok</t></is></c></row>'
             '<row r="2"><c r="A2" t="inlineStr"><is><t>Zoë</t></is></c><c r="B2" s="1"><v>45292</v></c><c r="C2"><v>1</v></c><c r="D2"><v>0.25</v></c><c r="E2" t="b"><v>1</v></c></row>'
             '<row r="3"><c r="A3" t="inlineStr"><is><t>Max</t></is></c><c r="B3" s="1"><v>45293</v></c><c r="D3"><v>0.5</v></c><c r="E3" t="b"><v>0</v></c></row>'
             '<row r="4"><c r="A4" t="inlineStr"><is><t>Ann</t></is></c><c r="B4" s="1"><v>45658.5</v></c><c r="C4"><v>30</v></c><c r="D4"><v>1</v></c><c r="E4" t="b"><v>1</v></c></row>')
    with zipfile.ZipFile(os.path.join(out, "book.xlsx"), "w") as archive:
        archive.writestr("xl/workbook.xml", f'<workbook {s} xmlns:r="{rel}"><sheets><sheet name="First sheet" sheetId="1" r:id="a"/><sheet name="Two" sheetId="2" r:id="b"/></sheets></workbook>')
        archive.writestr("xl/_rels/workbook.xml.rels", f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="a" Type="{rel}/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="b" Type="{rel}/worksheet" Target="/xl/worksheets/sheet2.xml"/></Relationships>')
        archive.writestr("xl/sharedStrings.xml", f"<sst {s}><si><t>name</t></si><si><r><t>wh</t></r><r><t>en</t></r></si></sst>")
        archive.writestr("xl/styles.xml", f'<styleSheet {s}><numFmts count="1"><numFmt numFmtId="170" formatCode="dd\\.mm\\.yyyy"/></numFmts><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="170"/></cellXfs></styleSheet>')
        archive.writestr("xl/worksheets/sheet1.xml", sheet(first))
        archive.writestr("xl/worksheets/sheet2.xml", sheet('<row r="1"><c r="A1" t="inlineStr"><is><t>k</t></is></c></row><row r="2"><c r="A2"><v>7</v></c></row>'))
    with zipfile.ZipFile(os.path.join(out, "other.xlsx"), "w") as archive:
        archive.writestr("readme.txt", "nothing")
    with open(os.path.join(out, "damaged.xlsx"), "wb") as handle:
        handle.write(b"PK\x03\x04 and then nothing of use")
    with open(os.path.join(out, "broken.json"), "w", encoding="utf-8") as handle:
        handle.write('[{"a": 1},')
    with open(os.path.join(out, "line.csv"), "w", encoding="utf-8") as handle:
        handle.write("x,y,g\n" + "".join(f"{x},{y},{'high' if x >= 20 else 'low'}\n" for x, y in zip(XS, YS)))


def check():
    tables = {table["table"]: table for table in load("profile.json")}
    expect(set(tables) == {"orders", "regions", "book_first_sheet", "book_two", "line"}, f"tables: {sorted(tables)}")
    orders = {column["name"]: column for column in tables["orders"]["columns"]}
    expect(tables["orders"]["duplicate_rows"] == 1, "one duplicate row")
    expect({name: column["type"] for name, column in orders.items()} == {"order_id": "integer", "day": "date", "region": "text", "amount": "integer", "rating": "integer", "code": "text"}, "types, with leading zeros kept as text")
    amounts = [10, 20, 30, 40, 50, 60, 70, 80, 90, 1000, 1000]
    expect(orders["amount"]["missing"] == 1 and orders["amount"]["missing_percent"] == 8.3, "missing values are counted")
    near(orders["amount"]["median"], statistics.median(amounts), "median")
    near(orders["amount"]["mean"], statistics.mean(amounts), "mean")
    near(orders["amount"]["sd"], statistics.stdev(amounts), "standard deviation")
    q = statistics.quantiles(amounts, n=4, method="inclusive")
    near(orders["amount"]["q1"], q[0], "first quartile")
    near(orders["amount"]["q3"], q[2], "third quartile")
    expect(orders["amount"]["outliers"] == 2, "two outliers")
    expect(orders["day"]["first"].startswith("2025-01-03") and orders["day"]["last"].startswith("2025-03-29"), "first and last day")
    expect(any("spaces" in words for words in orders["region"]["warnings"]), "spaces are noticed")
    pair = {(entry["a"], entry["b"]): entry for entry in tables["line"]["correlations"]}[("x", "y")]
    mx, my = statistics.mean(XS), statistics.mean(YS)
    r = sum((x - mx) * (y - my) for x, y in zip(XS, YS)) / (sum((x - mx) ** 2 for x in XS) * sum((y - my) ** 2 for y in YS)) ** 0.5
    near(pair["pearson"], r, "Pearson", 6e-4)
    near(pair["spearman"], 1.0, "Spearman", 0.01)
    book = {column["name"]: column for column in tables["book_first_sheet"]["columns"]}
    expect(book["when"]["first"] == "2024-01-01 00:00" and book["when"]["last"] == "2025-01-01 12:00", f"Excel dates, got {book['when']}")
    expect(book["n"]["missing"] == 1 and book["n"]["sum"] == 31, "a skipped Excel cell is missing, not shifted")
    expect(("Zoë", 1) in [tuple(pair) for pair in book["name"]["top"]], "text of the workbook")
    expect({column["name"] for column in tables["regions"]["columns"]} == {"region", "lead.name", "size"}, "nested JSON is flattened")

    group = {row["r"]: row for row in load("group.json")}
    expect(group["north"]["n"] == 5 and group["north"]["s"] == 1120 and group["north"]["m"] == 55, f"north: {group['north']}")
    expect(group["east"]["s"] == 210 and group["south"]["n"] == 3, "east and south")
    expect(rows("join.csv") == [["lead", "s"], ["Ada", "2120"], ["Bo", "80"]], f"join: {rows('join.csv')}")
    expect(rows("pivot.csv") == [["upper(region)", "2025-01", "2025-02", "2025-03"], ["EAST", "", "", "210"], ["NORTH", "30", "", "2090"], ["SOUTH", "30", "90", ""]], f"pivot: {rows('pivot.csv')}")
    stats = load("stats.json")[0]
    near(stats["r"], r, "corr in SQL")
    near(stats["sd"], statistics.stdev(XS), "stddev in SQL")
    near(stats["q"], 35.1, "quantile in SQL")
    expect(stats["m"] in ("low", "high"), "mode in SQL")
    result = load("compare.json")
    near(result["difference"], statistics.mean(YS[20:]) - statistics.mean(YS[:20]), "difference of means")
    expect(result["low"] < result["difference"] < result["high"] and result["p"] < 0.01, "interval and p of a clear difference")
    above = sum((a > b) - (a < b) for a in YS[20:] for b in YS[:20])
    near(result["cliffs_delta"], above / 400, "Cliff's delta, pair by pair")
    print(f"ok   {checks} facts of the answers")


make() if step == "make" else check()
