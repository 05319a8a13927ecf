"""Reads tables from CSV, TSV, JSON, JSON Lines and Excel (.xlsx) files with the standard library alone.

Invariant: cells are text or None exactly as they stand in the file (xlsx numbers and dates in plain writing); typing happens later and visibly.
"""
import csv
import io
import json
import os
import re
import xml.etree.ElementTree as tree
import zipfile
from datetime import datetime, timedelta

MISSING = {"", "na", "n/a", "nan", "null", "none", "-", "--", "#n/a"}
_LARGEST_PART = 256 * 1024 * 1024
_NUMBER = re.compile(r"^[+-]?(\d{1,3}(,\d{3})+|\d+)?(\.\d*)?([eE][+-]?\d+)?$")
_DATES = ("%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y/%m/%d", "%d.%m.%Y", "%Y-%m")
_S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"


class TableError(Exception):
    """What is wrong with a file, where, and what to do."""


class Table:
    """A name, column names, rows of equal length, and notes on what reading had to decide."""

    def __init__(self, name, columns, rows, notes):
        self.name, self.columns, self.rows, self.notes = name, columns, rows, notes


def read_tables(path):
    """Every table of a file: one, or one per sheet."""
    if not os.path.isfile(path):
        raise TableError(f"{path}: no such file")
    with open(path, "rb") as handle:
        raw = handle.read()
    stem = re.sub(r"\W+", "_", os.path.splitext(os.path.basename(path))[0]).strip("_").lower() or "data"
    if raw[:4] == b"PK\x03\x04":
        return _from_xlsx(raw, path, stem)
    if raw[:8] == b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1":
        raise TableError(f"{path} is an old .xls file; save it as .xlsx or CSV")
    notes = []
    for coding in ("utf-8-sig", "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8", "cp1252"):
        try:
            text = raw.decode(coding)
            break
        except UnicodeDecodeError:
            continue
    else:
        raise TableError(f"{path} is not text, JSON or .xlsx")
    if coding == "cp1252":
        notes.append("not UTF-8: read as Windows-1252; check umlauts and accents")
    if "\x00" in text[:4096]:
        raise TableError(f"{path} is binary, not a table")
    if not text.strip():
        raise TableError(f"{path} is empty")
    if path.lower().endswith((".json", ".jsonl", ".ndjson")) or text.lstrip()[0] in "[{":
        columns, rows = _from_json(text, path)
    else:
        columns, rows = _from_delimited(text, path, notes)
    return [_finished(stem, columns, rows, notes, path)]


def _finished(name, columns, rows, notes, path):
    if not columns:
        raise TableError(f"{path}: no header line")
    seen, unique = {}, []
    for at, column in enumerate(columns):
        column = str(column).strip() if column not in (None, "") else f"column_{at + 1}"
        seen[column.lower()] = seen.get(column.lower(), 0) + 1
        if seen[column.lower()] > 1:
            notes.append(f"column {column!r} occurs more than once; the later one is called {column}_{seen[column.lower()]}")
            column = f"{column}_{seen[column.lower()]}"
        unique.append(column)
    return Table(name, unique, rows, notes)


def _from_delimited(text, path, notes):
    first = next(line for line in text.splitlines() if line.strip())
    delimiter = "\t" if path.lower().endswith(".tsv") else max(",;\t|", key=first.count)
    if delimiter != ",":
        notes.append(f"separator is {'tab' if delimiter == chr(9) else delimiter!r}")
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise TableError(f"{path}: {error}; is a quote left open?") from error
    width, ragged = len(rows[0]), []
    for at, row in enumerate(rows[1:], start=2):
        if len(row) != width:
            ragged.append(at)
    if ragged:
        notes.append(f"{len(ragged)} rows do not have {width} cells (first: row {ragged[0]}); short ones were filled, extra cells dropped")
    return rows[0], [[cell for cell in (row + [None] * width)[:width]] for row in rows[1:]]


def _from_json(text, path):
    try:
        value = json.loads(text)
    except ValueError as error:
        try:
            value = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError:
            raise TableError(f"{path} is neither JSON nor JSON Lines: {error}") from error
    if isinstance(value, dict):
        lists = [inner for inner in value.values() if isinstance(inner, list) and inner and isinstance(inner[0], dict)]
        if len(lists) == 1:
            value = lists[0]
        elif value and all(isinstance(inner, list) for inner in value.values()) and len({len(inner) for inner in value.values()}) == 1:
            return list(value), [[_cell(cell) for cell in row] for row in zip(*value.values())]
        else:
            value = [value]
    if not isinstance(value, list) or not all(isinstance(record, dict) for record in value):
        raise TableError(f"{path}: expected a list of objects or an object of equally long lists")
    flat = [_flatten(record) for record in value]
    columns = []
    known = set()
    for record in flat:
        for name in record:
            if name not in known:
                known.add(name)
                columns.append(name)
    return columns, [[_cell(record.get(name)) for name in columns] for record in flat]


def _flatten(record, prefix=""):
    out = {}
    for name, value in record.items():
        if isinstance(value, dict) and value:
            out.update(_flatten(value, f"{prefix}{name}."))
        else:
            out[f"{prefix}{name}"] = value
    return out


def _cell(value):
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False)
    return repr(value) if isinstance(value, float) else str(value)


def _from_xlsx(raw, path, stem):
    try:
        archive = zipfile.ZipFile(io.BytesIO(raw))
        names = set(archive.namelist())
        if "xl/workbook.xml" not in names:
            raise TableError(f"{path} is a zip, but not an Excel workbook")
        shared = [_joined(item) for item in _part(archive, "xl/sharedStrings.xml")] if "xl/sharedStrings.xml" in names else []
        dates = _date_styles(archive, names)
        targets = {entry.get("Id"): entry.get("Target") for entry in _part(archive, "xl/_rels/workbook.xml.rels")}
        book = _part(archive, "xl/workbook.xml")
        from_1904 = any(entry.get("date1904") in ("1", "true") for entry in book.iter(_S + "workbookPr"))
        tables, sheets = [], list(book.iter(_S + "sheet"))
        for sheet in sheets:
            target = targets[sheet.get(_R + "id")]
            part = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
            rows = _sheet_rows(_part(archive, part), shared, dates, from_1904)
            if not rows:
                continue
            name = stem if len(sheets) == 1 else f"{stem}_" + re.sub(r"\W+", "_", sheet.get("name")).strip("_").lower()
            width = max(len(row) for row in rows)
            rows = [row + [None] * (width - len(row)) for row in rows]
            notes = [f"sheet {sheet.get('name')!r}; formulas give their stored values"]
            if sum(cell is not None for cell in rows[0]) < width / 2 and len(rows) > 1:
                notes.append("the first row is mostly empty: is the header further down? Cut the rows above it")
            tables.append(_finished(name, rows[0], rows[1:], notes, path))
    except (zipfile.BadZipFile, KeyError, tree.ParseError, IndexError) as error:
        raise TableError(f"{path} is a damaged workbook ({error})") from error
    if not tables:
        raise TableError(f"{path}: every sheet is empty")
    return tables


def _part(archive, name):
    if archive.getinfo(name).file_size > _LARGEST_PART:
        raise TableError(f"{name} unpacks to more than {_LARGEST_PART >> 20} MiB; export the sheet as CSV")
    data = archive.read(name)
    if b"<!DOCTYPE" in data[:2000]:
        raise TableError(f"{name} declares a document type; refused")
    return tree.fromstring(data)


def _joined(item):
    return "".join(piece.text or "" for piece in item.iter(_S + "t"))


def _date_styles(archive, names):
    """Which cell styles are dates; Excel tells only by the number format."""
    if "xl/styles.xml" not in names:
        return set()
    styles = _part(archive, "xl/styles.xml")
    own = {int(entry.get("numFmtId")): entry.get("formatCode", "") for entry in styles.iter(_S + "numFmt")}
    dates, formats = set(), styles.find(_S + "cellXfs")
    for at, entry in enumerate(formats if formats is not None else []):
        number = int(entry.get("numFmtId", "0"))
        code = re.sub(r'"[^"]*"|\[[^\]]*\]|\\.', "", own.get(number, ""))
        if 14 <= number <= 22 or 45 <= number <= 47 or re.search(r"[dmyh]", code, re.I):
            dates.add(at)
    return dates


def _sheet_rows(sheet, shared, dates, from_1904):
    rows = []
    for row in sheet.iter(_S + "row"):
        cells = []
        for cell in row.iter(_S + "c"):
            letters = re.match(r"[A-Z]+", cell.get("r", "")) if cell.get("r") else None
            if letters:
                at = 0
                for letter in letters.group():
                    at = at * 26 + ord(letter) - 64
                cells += [None] * (at - 1 - len(cells))
            value, kind = cell.findtext(_S + "v"), cell.get("t", "n")
            if kind == "s" and value is not None:
                value = shared[int(value)]
            elif kind == "inlineStr":
                value = _joined(cell)
            elif kind == "b" and value is not None:
                value = "true" if value == "1" else "false"
            elif kind == "n" and value is not None and int(cell.get("s", "0")) in dates:
                value = _excel_date(float(value), from_1904)
            elif kind == "n" and value is not None:
                number = float(value)
                value = str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number)
            cells.append(value)
        if any(cell not in (None, "") for cell in cells):
            rows.append(cells)
    return rows


def _excel_date(days, from_1904):
    moment = datetime(1904, 1, 1) + timedelta(days=days) if from_1904 else datetime(1899, 12, 30) + timedelta(days=days)
    moment = (moment + timedelta(microseconds=500000)).replace(microsecond=0)
    return moment.strftime("%Y-%m-%d" if (moment.hour, moment.minute, moment.second) == (0, 0, 0) else "%Y-%m-%d %H:%M:%S")


def missing(cell):
    """Whether a cell holds nothing."""
    return cell is None or cell.strip().lower() in MISSING


def number(cell):
    """The number in a cell, or None when it is not one (thousands commas, currency and percent signs are allowed)."""
    bare = cell.strip().replace("\u2212", "-").replace("\u00a0", "").replace(" ", "").strip("$€£¥%")
    if not bare or not _NUMBER.match(bare) or not any(char.isdigit() for char in bare):
        return None
    value = float(bare.replace(",", ""))
    return value if abs(value) != float("inf") else None


def moment(cell):
    """The date in a cell, or None."""
    text = re.sub(r"(\.\d+)?(Z|[+-]\d{2}:?\d{2})$", "", cell.strip()) if ":" in cell else cell.strip()
    if not text[:1].isdigit():
        return None
    for form in _DATES:
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    return None


def kind_of(cells):
    """'empty', 'integer', 'number', 'date', 'boolean', 'text', or 'mixed' (mostly numbers, some text)."""
    present = [cell for cell in cells if not missing(cell)]
    if not present:
        return "empty"
    if all(cell.strip().lower() in ("true", "false", "yes", "no") for cell in present):
        return "boolean"
    padded = sum(1 for cell in present if re.match(r"^0\d+$", cell.strip()))
    values = [number(cell) for cell in present]
    readable = sum(value is not None for value in values)
    if readable == len(present) and not padded:
        return "integer" if all(value == int(value) for value in values) and not any("." in cell for cell in present) else "number"
    if padded:
        return "text"
    if all(moment(cell) is not None for cell in present):
        return "date"
    return "mixed" if readable >= 0.6 * len(present) else "text"
