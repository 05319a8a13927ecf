#!/usr/bin/env python3
"""Profiles a table: types, missing values, spread, outliers, duplicates, correlations, and what looks wrong.

Invariant: every number is computed over all rows; exit 0 with a profile, 2 with the reason why there is none.
"""
import argparse
import json
import math
import re
import sys

sys.dont_write_bytecode = True
from tables import TableError, kind_of, missing, moment, number, read_tables  # noqa: E402

# A number that only names a row has no size; its correlations mean nothing.
_IDENTIFIER = re.compile(r"(^|[_ .-])(id|key|nr|no|code|zip|index)$|Id$", re.I)


def quantile(ordered, share):
    """The quantile of sorted values, by linear interpolation."""
    at = (len(ordered) - 1) * share
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def correlation(xs, ys):
    """Pearson's r, or None when one side does not vary."""
    n = len(xs)
    if n < 3:
        return None
    mean_x, mean_y = math.fsum(xs) / n, math.fsum(ys) / n
    over = math.fsum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys))
    under = math.sqrt(math.fsum((x - mean_x) ** 2 for x in xs) * math.fsum((y - mean_y) ** 2 for y in ys))
    return max(-1.0, min(1.0, over / under)) if under else None


def ranks(values):
    """Ranks from 1, ties share their mean rank."""
    order = sorted(range(len(values)), key=lambda at: values[at])
    out, at = [0.0] * len(values), 0
    while at < len(order):
        end = at
        while end + 1 < len(order) and values[order[end + 1]] == values[order[at]]:
            end += 1
        for inner in range(at, end + 1):
            out[order[inner]] = (at + end) / 2 + 1
        at = end + 1
    return out


def profile(table):
    """The profile as plain data."""
    columns = [_column(name, [row[at] for row in table.rows], len(table.rows)) for at, name in enumerate(table.columns)]
    seen = {}
    for row in table.rows:
        seen[tuple(row)] = seen.get(tuple(row), 0) + 1
    duplicates = sum(count - 1 for count in seen.values())
    result = {"table": table.name, "rows": len(table.rows), "columns": columns, "duplicate_rows": duplicates, "notes": list(table.notes)}
    result["correlations"] = _correlations(table, columns)
    result["warnings"] = [f"{column['name']}: {words}" for column in columns for words in column["warnings"]]
    if duplicates:
        result["warnings"].insert(0, f"{duplicates} rows repeat another row exactly")
    return result


def _column(name, cells, total):
    present = [cell for cell in cells if not missing(cell)]
    kind, warnings = kind_of(cells), []
    distinct = {}
    for cell in present:
        distinct[cell.strip()] = distinct.get(cell.strip(), 0) + 1
    column = {"name": name, "type": kind, "missing": total - len(present), "missing_percent": round(100 * (total - len(present)) / total, 1) if total else 0.0, "distinct": len(distinct), "warnings": warnings}
    if kind == "empty":
        warnings.append("holds nothing")
        return column
    if column["missing_percent"] >= 20:
        warnings.append(f"{column['missing_percent']} % are missing; find out why before averaging")
    if kind in ("integer", "number", "mixed"):
        values = sorted(value for value in (number(cell) for cell in present) if value is not None)
        column.update(_spread(values))
        if kind == "mixed":
            odd = [cell.strip() for cell in present if number(cell) is None]
            warnings.append(f"{len(odd)} of {len(present)} values are not numbers, e.g. {', '.join(repr(cell) for cell in list(dict.fromkeys(odd))[:3])}")
        if column["outliers"]:
            warnings.append(f"{column['outliers']} values lie beyond 1.5 times the middle range (below {_show(column['fence_low'])} or above {_show(column['fence_high'])}); extremes {_show(values[0])} and {_show(values[-1])}")
        if any(value in (-999, -99, 999, 9999, -9999, 99999) for value in (values[0], values[-1])) and column["outliers"]:
            warnings.append("an extreme value looks like a code for 'missing'")
        if kind == "integer" and len(distinct) == total and total > 10:
            column["key"] = True
    elif kind == "date":
        moments = sorted(moment(cell) for cell in present)
        column["first"], column["last"] = moments[0].isoformat(" ")[:16], moments[-1].isoformat(" ")[:16]
        gaps = sorted((b - a).days for a, b in zip(moments, moments[1:]))
        if gaps and gaps[-1] > 5 * max(gaps[len(gaps) // 2], 1):
            warnings.append(f"a gap of {gaps[-1]} days where {gaps[len(gaps) // 2]} are usual")
    column["top"] = sorted(distinct.items(), key=lambda pair: (-pair[1], pair[0]))[:5]
    if kind == "text":
        folded = {}
        for cell in distinct:
            folded.setdefault(" ".join(cell.casefold().split()), []).append(cell)
        variants = [group for group in folded.values() if len(group) > 1]
        if variants:
            warnings.append(f"{len(variants)} values are written in several ways, e.g. {' / '.join(repr(cell) for cell in sorted(variants[0])[:3])}")
        spaces = sum(1 for cell in present if cell != cell.strip())
        if spaces:
            warnings.append(f"{spaces} values begin or end with spaces")
        if len(distinct) == total and total > 10:
            column["key"] = True
    if len(distinct) == 1 and total > 1 and not column["missing"]:
        warnings.append("holds one and the same value everywhere")
    return column


def _spread(values):
    n = len(values)
    mean = math.fsum(values) / n
    q1, q3 = quantile(values, 0.25), quantile(values, 0.75)
    low, high = q1 - 1.5 * (q3 - q1), q3 + 1.5 * (q3 - q1)
    return {"min": values[0], "q1": q1, "median": quantile(values, 0.5), "mean": mean, "q3": q3, "max": values[-1],
            "sd": math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1)) if n > 1 else 0.0, "sum": math.fsum(values),
            "zeros": sum(value == 0 for value in values), "negative": sum(value < 0 for value in values),
            "outliers": sum(value < low or value > high for value in values), "fence_low": low, "fence_high": high}


def _correlations(table, columns):
    numeric = [at for at, column in enumerate(columns) if column["type"] in ("integer", "number") and column["distinct"] > 2 and not _IDENTIFIER.search(column["name"])][:30]
    parsed = {at: [None if missing(row[at]) else number(row[at]) for row in table.rows] for at in numeric}
    found = []
    for place, a in enumerate(numeric):
        for b in numeric[place + 1:]:
            pairs = [(x, y) for x, y in zip(parsed[a], parsed[b]) if x is not None and y is not None]
            if len(pairs) < 5:
                continue
            xs, ys = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
            r, rho = correlation(xs, ys), correlation(ranks(xs), ranks(ys))
            if r is not None and rho is not None and max(abs(r), abs(rho)) >= 0.3:
                found.append({"a": columns[a]["name"], "b": columns[b]["name"], "pearson": round(r, 3), "spearman": round(rho, 3), "n": len(pairs)})
    return sorted(found, key=lambda entry: -max(abs(entry["pearson"]), abs(entry["spearman"])))[:12]


def _show(value):
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"


def as_markdown(result):
    """The profile for reading."""
    out = [f"# {result['table']}: {result['rows']:,} rows, {len(result['columns'])} columns", ""]
    if result["warnings"] or result["notes"]:
        out += ["## Look at this first", ""] + [f"- {words}" for words in result["notes"] + result["warnings"]] + [""]
    out += ["## Columns", "", "| column | type | missing | distinct | details |", "|---|---|---:|---:|---|"]
    for column in result["columns"]:
        if "median" in column:
            details = f"min {_show(column['min'])}, q1 {_show(column['q1'])}, median {_show(column['median'])}, mean {_show(column['mean'])}, q3 {_show(column['q3'])}, max {_show(column['max'])}, sd {_show(column['sd'])}, outliers {column['outliers']}"
        elif "first" in column:
            details = f"{column['first']} to {column['last']}"
        else:
            details = ", ".join(f"{value[:30]} ({count})" for value, count in column.get("top", []))
        if column.get("key"):
            details = "every value once (a key?); " + details
        out.append(f"| {column['name']} | {column['type']} | {column['missing']} ({column['missing_percent']} %) | {column['distinct']} | {details.replace('|', '/')} |")
    if result["correlations"]:
        out += ["", "## Columns that move together", "", "| a | b | Pearson | Spearman | n |", "|---|---|---:|---:|---:|"]
        out += [f"| {entry['a']} | {entry['b']} | {entry['pearson']} | {entry['spearman']} | {entry['n']} |" for entry in result["correlations"]]
    return "\n".join(out) + "\n"


def main(arguments=None):
    """Profiles every table of the files; the exit code."""
    parser = argparse.ArgumentParser(prog="profile_table.py", description="Profile CSV, TSV, JSON, JSON Lines or .xlsx files. Exit codes: 0 done, 2 unreadable.")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    options = parser.parse_args(arguments)
    try:
        results = [profile(table) for path in options.files for table in read_tables(path)]
    except (TableError, OSError) as error:
        print(f"profile: {error}", file=sys.stderr)
        return 2
    print(json.dumps(results, ensure_ascii=False, indent=1) if options.json else "\n".join(as_markdown(result) for result in results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
