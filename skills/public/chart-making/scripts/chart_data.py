"""Reads tables (CSV, TSV, JSON, JSON Lines) and turns columns into what a chart draws.

Invariant: a cell that cannot be read is either a declared gap (None) or a DataError that names column and row.
"""
import csv
import io
import json
import re
import sys
from datetime import datetime, timezone

GAPS = {"", "na", "n/a", "nan", "null", "none", "-", "--", "–", "—", "."}
AGGREGATES = ("sum", "mean", "median", "min", "max", "count", "first", "last")
_NUMBER = re.compile(r"^[+-]?(\d{1,3}(,\d{3})+|\d+)?(\.\d+)?([eE][+-]?\d+)?$")
_TIME_FORMS = (
    (re.compile(r"^\d{4}-\d{2}$"), "%Y-%m"),
    (re.compile(r"^\d{4}-\d{2}-\d{2}$"), "%Y-%m-%d"),
    (re.compile(r"^\d{4}/\d{2}/\d{2}$"), "%Y/%m/%d"),
    (re.compile(r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}$"), "%Y-%m-%d %H:%M"),
    (re.compile(r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}$"), "%Y-%m-%d %H:%M:%S"),
)


class DataError(Exception):
    """What is wrong with the data and what to do about it, in words for the person who asked for the chart."""


def read_table(path):
    """The column names and the rows (lists of text, number or None) of a file; '-' is standard input."""
    try:
        if path == "-":
            raw = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as handle:
                raw = handle.read()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    if b"\x00" in raw[:4096]:
        raise DataError(f"{path} is not a text file; export the sheet as CSV first")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("cp1252", errors="replace")
    if not text.strip():
        raise DataError(f"{path} is empty")
    lower = path.lower()
    if lower.endswith((".jsonl", ".ndjson")):
        columns, rows = _from_records(_json_lines(text, path), path)
    elif lower.endswith(".json") or text.lstrip()[0] in "[{":
        columns, rows = _from_json(text, path)
    else:
        columns, rows = _from_delimited(text, "\t" if lower.endswith(".tsv") else None)
    if not rows:
        raise DataError(f"{path} has a header but no rows")
    return columns, rows


def _from_delimited(text, delimiter):
    first = text.split("\n", 1)[0]
    if delimiter is None:
        delimiter = max(",;\t|", key=first.count)
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if any(cell.strip() for cell in row)]
    columns = [name.strip() or f"column {at + 1}" for at, name in enumerate(rows[0])]
    width = len(columns)
    for at, row in enumerate(rows[1:], start=2):
        if len(row) > width and any(cell.strip() for cell in row[width:]):
            raise DataError(f"row {at} has {len(row)} cells, the header has {width}: quote cells that hold the separator {delimiter!r}")
    return columns, [(row + [""] * width)[:width] for row in rows[1:]]


def _json_lines(text, path):
    records = []
    for at, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                records.append(json.loads(line))
            except ValueError as error:
                raise DataError(f"{path}, line {at}: not JSON ({error})") from error
    return records


def _from_json(text, path):
    try:
        value = json.loads(text)
    except ValueError as error:
        try:
            return _from_records(_json_lines(text, path), path)
        except DataError:
            raise DataError(f"{path} is not valid JSON: {error}") from error
    if isinstance(value, dict) and isinstance(value.get("columns"), list):
        rows = value.get("rows", value.get("data"))
        if isinstance(rows, list) and all(isinstance(row, list) for row in rows):
            return [str(name) for name in value["columns"]], rows
    if isinstance(value, dict) and value and all(isinstance(cells, list) for cells in value.values()):
        lengths = {name: len(cells) for name, cells in value.items()}
        if len(set(lengths.values())) > 1:
            raise DataError(f"{path}: the columns differ in length: {lengths}")
        return list(value), [list(row) for row in zip(*value.values())]
    if isinstance(value, dict):
        lists = [inner for inner in value.values() if isinstance(inner, list) and inner and isinstance(inner[0], dict)]
        value = lists[0] if len(lists) == 1 else [value]
    return _from_records(value, path)


def _from_records(records, path):
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise DataError(f"{path}: expected a list of objects, an object of equally long lists, or {{columns, rows}}")
    columns = []
    for record in records:
        columns.extend(name for name in record if name not in columns)
    return columns, [[record.get(name) for name in columns] for record in records]


def number(cell):
    """The number a cell holds, None for a gap, or the text itself when it is neither."""
    if cell is None or isinstance(cell, bool):
        return None if cell is None else int(cell)
    if isinstance(cell, (int, float)):
        return None if cell != cell or cell in (float("inf"), float("-inf")) else cell
    text = str(cell).strip()
    if text.lower() in GAPS:
        return None
    bare = text.replace("\u2212", "-").replace("\u00a0", "").replace(" ", "")
    negative = bare.startswith("(") and bare.endswith(")")
    bare = bare.strip("()").strip("$€£¥%")
    if not bare or not _NUMBER.match(bare):
        return text
    try:
        value = float(bare.replace(",", ""))
    except ValueError:
        return text
    if value in (float("inf"), float("-inf")):
        return text
    return -value if negative else (int(value) if value == int(value) and abs(value) < 1e15 else value)


def moment(cell):
    """Seconds since 1970 (UTC) for a date cell, or None when it is not a date."""
    text = str(cell).strip()
    quarter = re.match(r"^(\d{4})[- ]?Q([1-4])$", text, re.I)
    if quarter:
        return datetime(int(quarter.group(1)), int(quarter.group(2)) * 3 - 2, 1, tzinfo=timezone.utc).timestamp()
    text = re.sub(r"(\.\d+)?(Z|[+-]\d{2}:?\d{2})?$", "", text) if "T" in text or ":" in text else text
    for form, pattern in _TIME_FORMS:
        if form.match(text):
            try:
                return datetime.strptime(text.replace("T", " "), pattern).replace(tzinfo=timezone.utc).timestamp()
            except ValueError:
                return None
    return None


def column_at(columns, wanted):
    """The position of a column, by name, by name without case, or by number from 1."""
    if wanted in columns:
        return columns.index(wanted)
    folded = [name.casefold() for name in columns]
    if wanted.casefold() in folded:
        return folded.index(wanted.casefold())
    if wanted.isdigit() and 1 <= int(wanted) <= len(columns):
        return int(wanted) - 1
    raise DataError(f"there is no column {wanted!r}; the columns are: {', '.join(columns)}")


def kind_of(cells):
    """'year', 'number', 'time' or 'category': what an axis over these cells is."""
    present = [cell for cell in cells if cell is not None and str(cell).strip().lower() not in GAPS]
    if not present:
        return "category"
    if all(re.match(r"^(1[5-9]|20|21)\d{2}$", str(cell).strip()) for cell in present):
        return "year"
    if all(not isinstance(number(cell), str) for cell in present):
        return "number"
    if all(moment(cell) is not None for cell in present):
        return "time"
    return "category"


def numbers(rows, at, name):
    """A column as numbers and gaps; text in it is an error that names the row."""
    values = []
    for row_at, row in enumerate(rows, start=1):
        value = number(row[at])
        if isinstance(value, str):
            raise DataError(f"column {name!r}, data row {row_at}: {value!r} is not a number; clean it or leave the cell empty for a gap")
        values.append(value)
    return values


def aggregate(values, how):
    """One number for several of the same place, or None when all are gaps."""
    present = [value for value in values if value is not None]
    if how == "count":
        return len(present)
    if not present:
        return None
    ordered = sorted(present)
    middle = len(ordered) // 2
    return {
        "sum": lambda: sum(present),
        "mean": lambda: sum(present) / len(present),
        "median": lambda: ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2,
        "min": lambda: ordered[0],
        "max": lambda: ordered[-1],
        "first": lambda: present[0],
        "last": lambda: present[-1],
    }[how]()


def series_of(columns, rows, x, ys, group, how):
    """(axis kind, places, [(name, values)]): one value a place and series, gaps where there is none."""
    x_at = column_at(columns, x)
    kind = kind_of([row[x_at] for row in rows])
    convert = {"year": number, "number": number, "time": moment, "category": lambda cell: "" if cell is None else str(cell).strip()}[kind]
    places, cells = [], {}
    for row in rows:
        place = convert(row[x_at])
        if place is None or place == "":
            continue
        if place not in cells:
            places.append(place)
            cells[place] = {}
        for y in ys:
            name = str(row[column_at(columns, group)]).strip() if group else y
            cells[place].setdefault(name, []).append(row)
    if not places:
        raise DataError(f"column {x!r} is empty")
    names = []
    for place in places:
        names.extend(name for name in cells[place] if name not in names)
    if kind != "category":
        places.sort()
    value_of = {}
    for y in ys:
        y_at = column_at(columns, y)
        for row, value in zip(rows, numbers(rows, y_at, y)):
            value_of[(id(row), y)] = value
    series = []
    for name in names:
        values = []
        for place in places:
            found = [value_of[(id(row), ys[0] if group else name)] for row in cells[place].get(name, [])]
            if len(found) > 1 and how is None:
                shown = "" if not group else f" of {name!r}"
                raise DataError(f"{len(found)} rows{shown} share one value of {x!r}; say how to join them: --agg sum, mean, median, min, max, count")
            values.append(aggregate(found, how or "first") if found else None)
        series.append((name, values))
    if not any(value is not None for _, values in series for value in values):
        raise DataError(f"there is no number in {', '.join(ys)}")
    return kind, places, series
