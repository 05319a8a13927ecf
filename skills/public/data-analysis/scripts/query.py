#!/usr/bin/env python3
"""Runs SQL over table files: loads them into SQLite in memory, adds the aggregates analysts miss, prints or saves the answer.

Invariant: the files are only read, the database lives in memory, and the answer says how many rows it has.
"""
import argparse
import csv
import io
import json
import math
import os
import re
import sqlite3
import sys

sys.dont_write_bytecode = True
from profile_table import correlation, quantile  # noqa: E402
from tables import TableError, kind_of, missing, number, read_tables  # noqa: E402

EXAMPLES = """examples:
  query.py sales.csv                                     list tables and columns
  query.py sales.csv "SELECT region, sum(amount) FROM sales GROUP BY region ORDER BY 2 DESC"
  query.py sales.csv stores.xlsx "SELECT s.city, median(amount) FROM sales JOIN stores s USING (store_id) GROUP BY 1"
  query.py sales.csv --pivot region month "sum(amount)" -o pivot.csv
extra functions: median(x), quantile(x, q), stddev(x), mode(x), corr(x, y), regexp(pattern, text)
"""
AGGREGATES = {}


def _aggregate(name, arity):
    def register(maker):
        AGGREGATES[name] = (arity, maker)
        return maker
    return register


class _Collected:
    """An aggregate that keeps all values and computes at the end."""

    def __init__(self):
        self.rows = []

    def step(self, *values):
        if all(value is not None for value in values) and all(isinstance(value, (int, float)) for value in values[:2]):
            self.rows.append(values)


@_aggregate("median", 1)
class _Median(_Collected):
    def finalize(self):
        return quantile(sorted(row[0] for row in self.rows), 0.5) if self.rows else None


@_aggregate("quantile", 2)
class _Quantile(_Collected):
    def finalize(self):
        return quantile(sorted(row[0] for row in self.rows), min(1, max(0, self.rows[0][1]))) if self.rows else None


@_aggregate("stddev", 1)
class _Stddev(_Collected):
    def finalize(self):
        n = len(self.rows)
        if n < 2:
            return None
        mean = math.fsum(row[0] for row in self.rows) / n
        return math.sqrt(math.fsum((row[0] - mean) ** 2 for row in self.rows) / (n - 1))


@_aggregate("corr", 2)
class _Corr(_Collected):
    def finalize(self):
        return correlation([row[0] for row in self.rows], [row[1] for row in self.rows])


@_aggregate("mode", 1)
class _Mode:
    def __init__(self):
        self.counts = {}

    def step(self, value):
        if value is not None:
            self.counts[value] = self.counts.get(value, 0) + 1

    def finalize(self):
        return max(self.counts, key=lambda value: self.counts[value]) if self.counts else None


def load(paths):
    """A database with one table per file or sheet, and (name, columns, types, rows) of each."""
    base = sqlite3.connect(":memory:")
    for name, (arity, maker) in AGGREGATES.items():
        base.create_aggregate(name, arity, maker)
    base.create_function("regexp", 2, lambda pattern, text: text is not None and re.search(pattern, str(text)) is not None)
    listed, taken = [], set()
    for path in paths:
        for table in read_tables(path):
            name, at = table.name if not table.name[0].isdigit() else "t_" + table.name, 2
            while name in taken:
                name, at = f"{table.name}_{at}", at + 1
            taken.add(name)
            kinds = [kind_of([row[at] for row in table.rows]) for at in range(len(table.columns))]
            types = [{"integer": "INTEGER", "number": "REAL"}.get(kind, "TEXT") for kind in kinds]
            names = ", ".join(f'"{column.replace(chr(34), chr(34) * 2)}" {kind}' for column, kind in zip(table.columns, types))
            base.execute(f'CREATE TABLE "{name}" ({names})')
            marks = ", ".join("?" * len(table.columns))
            base.executemany(f'INSERT INTO "{name}" VALUES ({marks})', ([_value(cell, kind) for cell, kind in zip(row, types)] for row in table.rows))
            listed.append((name, table.columns, kinds, len(table.rows)))
    refused = {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH}
    base.set_authorizer(lambda action, *_: sqlite3.SQLITE_DENY if action in refused else sqlite3.SQLITE_OK)
    return base, listed


def _value(cell, kind):
    if missing(cell):
        return None
    if kind == "TEXT":
        return cell.strip()
    value = number(cell)
    return int(value) if kind == "INTEGER" else value


def pivot(base, table, row, column, measure):
    """(header, rows) with one line per value of row and one column per value of column."""
    columns = [value for (value,) in base.execute(f'SELECT DISTINCT {column} FROM "{table}" WHERE {column} IS NOT NULL ORDER BY 1')]
    if len(columns) > 60:
        raise TableError(f"{column} has {len(columns)} different values; a pivot takes at most 60 (group them first)")
    cells = {(key, value): result for key, value, result in base.execute(f'SELECT {row}, {column}, {measure} FROM "{table}" GROUP BY 1, 2')}
    keys = [key for (key,) in base.execute(f'SELECT DISTINCT {row} FROM "{table}" ORDER BY 1')]
    return [row] + [str(value) for value in columns], [[key] + [cells.get((key, value)) for value in columns] for key in keys]


def render(header, rows, form):
    """The answer as text."""
    if form == "json":
        return json.dumps([dict(zip(header, row)) for row in rows], ensure_ascii=False, indent=1) + "\n"
    if form == "csv":
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([["" if cell is None else cell for cell in row] for row in rows])
        return out.getvalue()
    show = lambda cell: "" if cell is None else f"{cell:,.4g}" if isinstance(cell, float) and abs(cell) < 1000 else f"{cell:,.2f}" if isinstance(cell, float) else str(cell).replace("|", "\\|")  # noqa: E731
    numeric = [all(row[at] is None or isinstance(row[at], (int, float)) for row in rows) for at in range(len(header))]
    lines = ["| " + " | ".join(str(name) for name in header) + " |", "|" + "|".join("---:" if flag else "---" for flag in numeric) + "|"]
    return "\n".join(lines + ["| " + " | ".join(show(cell) for cell in row) + " |" for row in rows]) + "\n"


def main(arguments=None):
    """Loads, asks, prints; the exit code."""
    parser = argparse.ArgumentParser(prog="query.py", description="SQL over CSV, TSV, JSON, JSON Lines and .xlsx files. Exit codes: 0 done, 2 bad input.", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="+", help="files, then the SQL (one argument)")
    parser.add_argument("--pivot", nargs=3, metavar=("ROW", "COLUMN", "MEASURE"), help="cross table of the first file's table; MEASURE is SQL such as sum(amount)")
    parser.add_argument("--format", choices=("md", "csv", "json"), help="default: from -o's ending, else md")
    parser.add_argument("--limit", type=int, default=200, help="most rows to print in md (default 200; files get all)")
    parser.add_argument("-o", "--output")
    options = parser.parse_args(arguments)
    sql = None
    if not os.path.exists(options.inputs[-1]) and re.match(r"(?is)\s*(select|with|explain|pragma)\b", options.inputs[-1]):
        sql = options.inputs.pop()
    if not options.inputs:
        parser.error("name at least one file before the SQL")
    form = options.format or {".csv": "csv", ".json": "json"}.get(os.path.splitext(options.output or "")[1].lower(), "md")
    try:
        base, listed = load(options.inputs)
        if not sql and not options.pivot:
            for name, columns, kinds, count in listed:
                print(f"{name} ({count} rows): " + ", ".join(f"{column} {kind}" for column, kind in zip(columns, kinds)))
            return 0
        if sql:
            cursor = base.execute(sql)
            header, rows = [entry[0] for entry in cursor.description or []], [list(row) for row in cursor.fetchall()]
        else:
            header, rows = pivot(base, listed[0][0], *options.pivot)
        if options.output:
            with open(options.output, "w", encoding="utf-8", newline="") as handle:
                handle.write(render(header, rows, form))
            print(f"{options.output}: {len(rows)} rows, {len(header)} columns")
        else:
            shown = rows[:options.limit] if form == "md" else rows
            print(render(header, shown, form), end="")
            if form == "md":
                print(f"\n{len(rows)} rows" + (f", the first {len(shown)} shown" if len(shown) < len(rows) else ""))
    except sqlite3.Error as error:
        known = "; ".join(f"{name}({', '.join(columns)})" for name, columns, _, _ in listed)
        print(f"query: {error}. Tables: {known}. Names with spaces need double quotes.", file=sys.stderr)
        return 2
    except (TableError, OSError) as error:
        print(f"query: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
