#!/usr/bin/env python3
"""Keeps and checks the ledger of a research: sources, claims, and the quotes that tie them together.

Invariant: 'check' exits 0 only when every claim rests on a listed source, every source is used, and every quote stands word for word in its saved text.
"""
import argparse
import json
import os
import re
import sys
from datetime import date

sys.dont_write_bytecode = True
from ledger_check import KINDS, STATES, SURE, check_ledger, check_report  # noqa: E402


class LedgerError(Exception):
    """What is wrong with the ledger file or the request."""


def load(path):
    """The ledger of a file, with its shape checked."""
    try:
        with open(path, encoding="utf-8-sig") as handle:
            ledger = json.load(handle)
    except OSError as error:
        raise LedgerError(f"{path}: {error.strerror}; start one with: ledger.py init {path} --question '…'") from error
    except ValueError as error:
        raise LedgerError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(ledger, dict):
        raise LedgerError(f"{path}: expected an object with question, sources, claims")
    for name in ("sources", "claims"):
        entries = ledger.setdefault(name, [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) and isinstance(entry.get("id"), str) for entry in entries):
            raise LedgerError(f"{path}: {name} must be a list of objects with a text id")
    return ledger


def save(path, ledger):
    """Writes whole or not at all: a broken ledger is worse than an old one."""
    fresh = path + ".new"
    with open(fresh, "w", encoding="utf-8") as handle:
        json.dump(ledger, handle, ensure_ascii=False, indent=1)
        handle.write("\n")
    os.replace(fresh, path)


def _next(entries, letter):
    taken = [int(entry["id"][1:]) for entry in entries if re.match(rf"^{letter}\d+$", entry["id"])]
    return f"{letter}{max(taken, default=0) + 1}"


def init(options):
    if os.path.exists(options.ledger):
        raise LedgerError(f"{options.ledger} exists already; it is left as it is")
    os.makedirs(os.path.dirname(os.path.abspath(options.ledger)), exist_ok=True)
    save(options.ledger, {"question": options.question, "started": date.today().isoformat(), "sources": [], "claims": []})
    print(f"{options.ledger}: ready")
    return 0


def add_source(options):
    ledger = load(options.ledger)
    for entry in ledger["sources"]:
        if options.url and entry.get("url", "").rstrip("/") == options.url.rstrip("/"):
            print(f"{entry['id']} (already there)")
            return 0
    if options.file and not os.path.isfile(os.path.join(os.path.dirname(options.ledger), options.file)):
        raise LedgerError(f"{options.file} does not exist beside the ledger; save the fetched text first")
    entry = {"id": _next(ledger["sources"], "S"), "title": options.title, "url": options.url, "publisher": options.publisher, "date": options.date, "kind": options.kind, "file": options.file, "accessed": date.today().isoformat()}
    ledger["sources"].append({name: value for name, value in entry.items() if value})
    save(options.ledger, ledger)
    print(entry["id"])
    return 0


def add_claim(options):
    ledger = load(options.ledger)
    known = {entry["id"] for entry in ledger["sources"]}
    quotes = []
    for quote in options.quote:
        source, colon, words = quote.partition(":")
        if not colon or not words.strip():
            raise LedgerError(f"--quote {quote!r}: write SOURCE:words, e.g. S1:'fell by 8 %'")
        quotes.append({"source": source.strip(), "text": words.strip()})
    sources = list(dict.fromkeys(options.source + [quote["source"] for quote in quotes]))
    unknown = [name for name in sources if name not in known]
    if unknown:
        raise LedgerError(f"unknown source {', '.join(unknown)}; known are {', '.join(sorted(known)) or 'none yet'}")
    if not sources and options.status != "open":
        raise LedgerError("a claim needs --source or --quote (or --status open while it has none)")
    entry = {"id": _next(ledger["claims"], "C"), "text": options.text, "sources": sources, "quotes": quotes, "confidence": options.confidence, "status": options.status, "note": options.note}
    ledger["claims"].append({name: value for name, value in entry.items() if value})
    save(options.ledger, ledger)
    print(entry["id"])
    return 0


def check(options):
    ledger = load(options.ledger)
    findings = check_ledger(ledger, os.path.dirname(options.ledger))
    if options.report:
        try:
            with open(options.report, encoding="utf-8-sig") as handle:
                findings += check_report(ledger, handle.read())
        except (OSError, UnicodeDecodeError) as error:
            raise LedgerError(f"{options.report} cannot be read ({error})") from error
    errors = sum(1 for level, _, _ in findings if level == "error")
    if options.json:
        print(json.dumps([{"level": level, "where": where, "words": words} for level, where, words in findings], ensure_ascii=False, indent=1))
    else:
        for level, where, words in findings:
            print(f"{where}: {level}: {words}")
        states = ", ".join(f"{sum(1 for claim in ledger['claims'] if claim.get('status', 'supported') == state)} {state}" for state in STATES)
        print(f"{len(ledger['sources'])} sources, {len(ledger['claims'])} claims ({states}); {errors} errors, {len(findings) - errors} warnings")
    return 1 if errors or (options.strict and findings) else 0


def sources(options):
    """The source list for a report, with only what is used unless --all."""
    ledger = load(options.ledger)
    used = {name for claim in ledger["claims"] for name in claim.get("sources", [])}
    for entry in ledger["sources"]:
        if options.all or entry["id"] in used:
            parts = [entry.get("publisher"), entry.get("title") and f"*{entry['title']}*", entry.get("date")]
            line = ", ".join(part for part in parts if part)
            address = f" <{entry['url']}>" if entry.get("url") else ""
            print(f"- [{entry['id']}] {line}.{address}" + (f" (read {entry['accessed']})" if entry.get("accessed") else ""))
    return 0


def main(arguments=None):
    """Parses and does one command; the exit code."""
    parser = argparse.ArgumentParser(prog="ledger.py", description="Claims and sources of a research. Exit codes: 0 good, 1 findings, 2 bad input.")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("init", help="start a ledger")
    one.add_argument("ledger")
    one.add_argument("--question", required=True)
    one = commands.add_parser("source", help="add a source; prints its id")
    one.add_argument("ledger")
    one.add_argument("--title", required=True)
    one.add_argument("--url", default="")
    one.add_argument("--publisher", default="", help="who answers for it")
    one.add_argument("--date", default="", help="when it was published")
    one.add_argument("--kind", choices=KINDS, default="secondary")
    one.add_argument("--file", default="", help="the saved text, relative to the ledger")
    one = commands.add_parser("claim", help="add a claim; prints its id")
    one.add_argument("ledger")
    one.add_argument("--text", required=True)
    one.add_argument("--source", action="append", default=[], metavar="S1")
    one.add_argument("--quote", action="append", default=[], metavar="S1:WORDS", help="verbatim words that carry the claim")
    one.add_argument("--confidence", choices=SURE, default="medium")
    one.add_argument("--status", choices=STATES, default="supported")
    one.add_argument("--note", default="")
    one = commands.add_parser("check", help="check the ledger, and a report against it")
    one.add_argument("ledger")
    one.add_argument("--report", help="a Markdown report that cites [S1]")
    one.add_argument("--strict", action="store_true", help="warnings count too")
    one.add_argument("--json", action="store_true")
    one = commands.add_parser("sources", help="print the source list in Markdown")
    one.add_argument("ledger")
    one.add_argument("--all", action="store_true", help="also sources that no claim uses")
    options = parser.parse_args(arguments)
    try:
        return {"init": init, "source": add_source, "claim": add_claim, "check": check, "sources": sources}[options.command](options)
    except LedgerError as error:
        print(f"ledger: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"ledger: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
