#!/usr/bin/env python3
"""Checks a Markdown report and renders it as one self-contained HTML page.

Invariant: exit 0 means good or written, 1 means that findings stand in the way, 2 means unusable input; the network is never used.
"""
import argparse
import json
import os
import sys

sys.dont_write_bytecode = True
from markdown_html import Page  # noqa: E402
from report_check import check  # noqa: E402

STYLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "assets", "report.css")


def main(arguments=None):
    """Parses and does one of check, html; the exit code."""
    parser = argparse.ArgumentParser(prog="report.py", description="Check a Markdown report, or render it. Exit codes: 0 good, 1 findings, 2 unusable input.")
    commands = parser.add_subparsers(dest="command", required=True)
    look = commands.add_parser("check", help="structure, citations, links, placeholders, long sentences")
    look.add_argument("report")
    look.add_argument("--strict", action="store_true", help="warnings count as errors")
    look.add_argument("--citations", action="store_true", help="also warn about figures without a citation")
    look.add_argument("--json", action="store_true")
    make = commands.add_parser("html", help="write one HTML file with everything inside")
    make.add_argument("report")
    make.add_argument("-o", "--output", help="default: the report's name with .html")
    make.add_argument("--css", default=STYLE, help="another style sheet")
    options = parser.parse_args(arguments)
    try:
        with open(options.report, encoding="utf-8-sig") as handle:
            text = handle.read().replace("\r\n", "\n")
        if not text.strip():
            return _fail(f"{options.report} is empty")
        folder = os.path.dirname(options.report)
        return _check(options, text, folder) if options.command == "check" else _html(options, text, folder)
    except UnicodeDecodeError:
        return _fail(f"{options.report} is not UTF-8 text")
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}")


def _fail(words):
    print(f"report: {words}", file=sys.stderr)
    return 2


def _check(options, text, folder):
    findings = check(text, folder, options.citations)
    counts = {level: sum(1 for finding in findings if finding.level == level) for level in ("error", "warning", "hint")}
    if options.json:
        print(json.dumps({"findings": [vars(finding) for finding in findings], **counts}, ensure_ascii=False, indent=1))
    else:
        for finding in findings:
            print(f"{options.report}:{finding.line}: {finding.level}: {finding.words}")
        print(f"{counts['error']} errors, {counts['warning']} warnings, {counts['hint']} hints")
    return 1 if counts["error"] or (options.strict and counts["warning"]) else 0


def _html(options, text, folder):
    with open(options.css, encoding="utf-8") as handle:
        style = handle.read().replace("</style", "")
    page = Page(text, folder)
    document = page.document(style)
    if page.missing:
        for address in page.missing:
            print(f"report: picture {address} cannot be read", file=sys.stderr)
        return _fail("nothing written; mend the pictures first")
    output = options.output or os.path.splitext(options.report)[0] + ".html"
    os.makedirs(os.path.dirname(os.path.abspath(output)), exist_ok=True)
    with open(output, "w", encoding="utf-8") as handle:
        handle.write(document)
    print(f"{output}: {len(document.encode('utf-8')):,} bytes, {len(page.order)} notes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
