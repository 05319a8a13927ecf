#!/usr/bin/env python3
"""Carries a literature review from exported records to a reference list: merge, screen, flow, cite.

Invariant: exit 0 means done, 1 means that the screening log has gaps, 2 means unusable input; decisions already made are never overwritten.
"""
import argparse
import csv
import json
import os
import re
import sys

sys.dont_write_bytecode = True
from cite import STYLES, cite  # noqa: E402
from dedupe import dedupe, name_records  # noqa: E402
from flow import flow_svg  # noqa: E402
from records import FIELDS, RecordError, read_records, write_bibtex  # noqa: E402

COLUMNS = ("id", "year", "first_author", "title", "doi", "screen", "screen_reason", "fulltext", "fulltext_reason", "note")
SCREEN, FULLTEXT = ("include", "exclude", "maybe", ""), ("include", "exclude", "unavailable", "")


def load_library(path):
    """The merged library."""
    try:
        with open(path, encoding="utf-8") as handle:
            library = json.load(handle)
        records = library["records"]
        if not all(isinstance(record, dict) and set(FIELDS) <= set(record) for record in records):
            raise KeyError("records")
        return library
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}; make it with: review.py merge FILES -o {path}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise RecordError(f"{path} is not a library made by 'merge' ({error})") from error


def merge(options):
    records, identified, complaints = [], {}, []
    for path in options.files:
        found, notes = read_records(path)
        identified[os.path.basename(path)] = identified.get(os.path.basename(path), 0) + len(found)
        records += found
        complaints += notes
    name_records(records)
    kept, joined, unsure = dedupe(records)
    library = {"identified": identified, "duplicates": len(joined), "records": kept}
    _write(options.output, json.dumps(library, ensure_ascii=False, indent=1) + "\n")
    if options.log:
        with open(options.log, "w", encoding="utf-8", newline="") as handle:
            writer = csv.writer(handle)
            writer.writerow(["kept", "dropped", "reason", "decided"])
            writer.writerows([[keep, drop, reason, "joined"] for keep, drop, reason, _ in joined] + [[a, b, reason, "look at it"] for a, b, reason in unsure])
    for words in complaints:
        print(f"warning: {words}", file=sys.stderr)
    for a, b, reason in unsure:
        print(f"look at: {a} and {b}: {reason}")
    print(f"{len(records)} records from {len(identified)} files, {len(joined)} duplicates joined, {len(unsure)} pairs to look at, {len(kept)} left in {options.output}")
    return 0


def screen(options):
    library = load_library(options.library)
    old = {}
    if os.path.exists(options.output):
        old = {row["id"]: row for row in read_log(options.output)}
    rows = []
    for record in sorted(library["records"], key=lambda record: (record["year"], record["id"])):
        row = {"id": record["id"], "year": record["year"], "first_author": record["authors"][0] if record["authors"] else "", "title": record["title"], "doi": record["doi"]}
        row.update({name: old.get(record["id"], {}).get(name, "") for name in COLUMNS[5:]})
        rows.append(row)
    gone = [name for name, row in old.items() if name not in {record["id"] for record in library["records"]}]
    if any(old[name]["screen"] for name in gone):
        raise RecordError(f"{options.output} holds decisions on records that are not in the library: {', '.join(gone[:5])}; nothing was changed")
    with open(options.output, "w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    print(f"{options.output}: {len(rows)} records, {sum(1 for row in rows if not row['screen'])} not decided yet")
    return 0


def read_log(path):
    """The screening log's rows."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as handle:
            rows = list(csv.DictReader(handle))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RecordError(f"{path} cannot be read ({error})") from error
    if not rows or not set(COLUMNS[:4] + COLUMNS[5:9]) <= set(rows[0]):
        raise RecordError(f"{path} is not a screening log; its columns must be {', '.join(COLUMNS)}")
    for row in rows:
        for name in ("screen", "fulltext"):
            row[name] = (row[name] or "").strip().lower()
    return rows


def count(library, rows):
    """The numbers of the flow diagram, and what is wrong with the log."""
    problems = []
    known = {record["id"] for record in library["records"]}
    seen = set()
    for row in rows:
        where = row["id"]
        if where in seen:
            problems.append(f"{where}: listed twice")
        seen.add(where)
        if where not in known:
            problems.append(f"{where}: not in the library")
        if row["screen"] not in SCREEN:
            problems.append(f"{where}: screen is {row['screen']!r}; use include, exclude or maybe")
        if row["fulltext"] not in FULLTEXT:
            problems.append(f"{where}: fulltext is {row['fulltext']!r}; use include, exclude or unavailable")
        if row["screen"] in ("", "maybe"):
            problems.append(f"{where}: title and abstract not decided")
        if row["screen"] == "include" and not row["fulltext"]:
            problems.append(f"{where}: full text not decided")
        if row["screen"] == "exclude" and row["fulltext"]:
            problems.append(f"{where}: excluded by its abstract, but has a full-text decision")
        if row["fulltext"] == "exclude" and not (row["fulltext_reason"] or "").strip():
            problems.append(f"{where}: excluded by its full text without a reason")
    problems += [f"{name}: in the library, but not in the log" for name in sorted(known - seen)]
    reasons = {}
    for row in rows:
        if row["screen"] == "include" and row["fulltext"] == "exclude":
            reason = (row["fulltext_reason"] or "no reason").strip().lower()
            reasons[reason] = reasons.get(reason, 0) + 1
    sought = [row for row in rows if row["screen"] == "include"]
    numbers = {"identified": sum(library["identified"].values()), "sources": library["identified"], "duplicates": library["duplicates"], "screened": len(rows), "excluded": sum(1 for row in rows if row["screen"] == "exclude"), "sought": len(sought), "unavailable": sum(1 for row in sought if row["fulltext"] == "unavailable"), "assessed": sum(1 for row in sought if row["fulltext"] in ("include", "exclude")), "fulltext_excluded": sum(reasons.values()), "reasons": dict(sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))), "included": sum(1 for row in sought if row["fulltext"] == "include")}
    if numbers["identified"] - numbers["duplicates"] != numbers["screened"]:
        problems.append(f"{numbers['identified']} found minus {numbers['duplicates']} duplicates is not {numbers['screened']} screened")
    return numbers, problems


def flow(options):
    numbers, problems = count(load_library(options.library), read_log(options.log))
    for words in problems[:40]:
        print(f"{options.log}: {words}", file=sys.stderr)
    if options.svg:
        _write(options.svg, flow_svg(numbers))
    if options.json:
        print(json.dumps(dict(numbers, problems=problems), ensure_ascii=False, indent=1))
    else:
        print(f"identified {numbers['identified']} ({', '.join(f'{name}: {n}' for name, n in numbers['sources'].items())}), duplicates {numbers['duplicates']}")
        print(f"screened {numbers['screened']}, excluded {numbers['excluded']}; sought {numbers['sought']}, not available {numbers['unavailable']}")
        print(f"assessed {numbers['assessed']}, excluded {numbers['fulltext_excluded']} ({', '.join(f'{name}: {n}' for name, n in numbers['reasons'].items()) or 'none'})")
        print(f"included {numbers['included']}; {len(problems)} problems")
    return 1 if problems else 0


def references(options):
    library = load_library(options.library)
    records = {record["id"]: record for record in library["records"]}
    wanted = list(records)
    if options.log:
        wanted = [row["id"] for row in read_log(options.log) if row["screen"] == "include" and row["fulltext"] == "include"]
    if options.cited:
        with open(options.cited, encoding="utf-8") as handle:
            cited = list(dict.fromkeys(re.findall(r"@([\w:.-]*\w)", re.sub(r"\S+@\S+\.\w+", "", handle.read()))))
        missing = [name for name in cited if name not in records]
        if missing:
            raise RecordError(f"{options.cited} cites {', '.join('@' + name for name in missing)}, not in the library")
        wanted = cited
    chosen = [records[name] for name in wanted if name in records]
    if options.style in ("apa", "chicago", "markdown") and not options.keep_order:
        chosen.sort(key=lambda record: (record["authors"][0].casefold() if record["authors"] else record["title"].casefold(), record["year"]))
    text = write_bibtex(chosen) if options.style == "bibtex" else "\n".join(cite(record, options.style, number) for number, record in enumerate(chosen, start=1)) + "\n"
    for record in chosen:
        lacking = [name for name in ("title", "year", "journal") if not record[name]] + ([] if record["authors"] else ["authors"])
        if lacking:
            print(f"warning: {record['id']} has no {', '.join(lacking)}", file=sys.stderr)
    if options.output:
        _write(options.output, text)
        print(f"{options.output}: {len(chosen)} references")
    else:
        print(text, end="")
    return 0


def _write(path, text):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(text)


def main(arguments=None):
    """Parses and does one command; the exit code."""
    parser = argparse.ArgumentParser(prog="review.py", description="From exported records to a reference list. Exit codes: 0 done, 1 gaps in the log, 2 unusable input.")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("merge", help="read BibTeX, RIS, NBIB, CSV; join duplicates")
    one.add_argument("files", nargs="+")
    one.add_argument("-o", "--output", default="library.json")
    one.add_argument("--log", help="CSV of joined and doubtful pairs")
    one = commands.add_parser("screen", help="make or extend the screening log")
    one.add_argument("library")
    one.add_argument("-o", "--output", default="screening.csv")
    one = commands.add_parser("flow", help="count the stages, check the log, draw the diagram")
    one.add_argument("library")
    one.add_argument("log")
    one.add_argument("--svg")
    one.add_argument("--json", action="store_true")
    one = commands.add_parser("cite", help="format references")
    one.add_argument("library")
    one.add_argument("--style", choices=STYLES + ("bibtex",), default="apa")
    one.add_argument("--log", help="only records this log includes")
    one.add_argument("--cited", help="only records a Markdown text cites as @id, in its order")
    one.add_argument("--keep-order", action="store_true")
    one.add_argument("-o", "--output")
    options = parser.parse_args(arguments)
    try:
        return {"merge": merge, "screen": screen, "flow": flow, "cite": references}[options.command](options)
    except RecordError as error:
        print(f"review: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"review: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
