#!/usr/bin/env python3
"""Says which public symbols lack documentation, and where written documentation no longer fits the code.

Invariant: 'gaps' and 'drift' only read; exit 0 is good, 1 means findings, 2 means unusable input.
"""
import argparse
import ast
import json
import os
import re
import sys

sys.dont_write_bytecode = True
from symbols import SKIPPED_FOLDERS, source_files, symbols_of  # noqa: E402

_PATHLIKE = re.compile(r"^(?:\.{0,2}/)?(?:[\w.-]+/)+[\w.-]+\.\w{1,6}$|^[\w-]+\.(?:py|rs|go|ts|tsx|js|java|c|h|cpp|toml|yaml|yml|json|md|sh|cfg|ini|sql)$")


def gaps(options):
    """Undocumented symbols and the share that is documented."""
    symbols, problems, languages = [], [], {}
    files = 0
    for path in source_files(options.paths, options.tests):
        files += 1
        try:
            language, found = symbols_of(path)
        except (OSError, ValueError, SyntaxError, RecursionError) as error:
            problems.append(f"{path}: {type(error).__name__}: {error}")
            continue
        symbols += found
        tally = languages.setdefault(language, [0, 0])
        tally[0] += sum(symbol.documented for symbol in found)
        tally[1] += len(found)
    if not files:
        print(f"docs_check: no source files under {', '.join(options.paths)}", file=sys.stderr)
        return 2
    missing = [symbol for symbol in symbols if not symbol.documented]
    share = 100 * (1 - len(missing) / len(symbols)) if symbols else 100.0
    if options.json:
        print(json.dumps({"files": files, "symbols": len(symbols), "documented_percent": round(share, 1), "languages": {name: {"documented": tally[0], "symbols": tally[1]} for name, tally in languages.items()}, "missing": [vars(symbol) for symbol in missing], "incomplete": [vars(symbol) for symbol in symbols if symbol.documented and symbol.lacks], "unreadable": problems}, indent=1))
    else:
        for symbol in missing[:options.limit]:
            print(f"{symbol.path}:{symbol.line}: {symbol.kind} {symbol.name} is not documented")
        for symbol in [symbol for symbol in symbols if symbol.documented and symbol.lacks][:options.limit]:
            print(f"{symbol.path}:{symbol.line}: {symbol.kind} {symbol.name} does not mention {', '.join(symbol.lacks)}")
        if len(missing) > options.limit:
            print(f"… and {len(missing) - options.limit} more (--limit)")
        for words in problems:
            print(f"warning: {words}", file=sys.stderr)
        by_language = ", ".join(f"{name} {tally[0]}/{tally[1]}" for name, tally in sorted(languages.items()))
        print(f"{files} files, {len(symbols)} public symbols, {share:.1f} % documented ({by_language})")
    return 1 if share < options.min or (options.min == 100 and missing) else 0


def drift(options):
    """Links, paths, commands' files, code blocks and names in Markdown that no longer exist."""
    root = os.path.abspath(options.root)
    if not os.path.isdir(root):
        print(f"docs_check: {options.root} is not a folder", file=sys.stderr)
        return 2
    pages = list(_pages(options.pages or [root]))
    if not pages:
        print("docs_check: no Markdown files found", file=sys.stderr)
        return 2
    words, paths = _words_of_code(root) if options.names else None, _endings(root)
    findings = []
    for page in pages:
        try:
            with open(page, encoding="utf-8-sig") as handle:
                text = handle.read()
        except (OSError, UnicodeDecodeError) as error:
            findings.append((page, 1, f"cannot be read ({error})"))
            continue
        findings += [(page, line, words_) for line, words_ in _look(text, page, paths, words)]
    if options.json:
        print(json.dumps([{"page": page, "line": line, "words": text} for page, line, text in findings], indent=1))
    else:
        for page, line, text in findings:
            print(f"{page}:{line}: {text}")
        print(f"{len(pages)} pages, {len(findings)} places that do not fit")
    return 1 if findings else 0


def _pages(paths):
    for path in paths:
        if os.path.isfile(path):
            yield path
            continue
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS and not name.startswith("."))
            yield from (os.path.join(folder, name) for name in sorted(names) if name.lower().endswith((".md", ".markdown")))


def _words_of_code(root):
    words = set()
    for path in source_files([root], include_tests=True):
        try:
            with open(path, encoding="utf-8", errors="ignore") as handle:
                words.update(re.findall(r"[A-Za-z_]\w+", handle.read()))
        except OSError:
            continue
    return words


def _endings(root):
    """Every file's path from each of its folders on: prose often names a path from the middle."""
    endings = set()
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS]
        inner = os.path.relpath(folder, root).replace(os.sep, "/")
        parts = [] if inner == "." else inner.split("/")
        for name in names + folders:
            endings.update("/" + "/".join(parts[at:] + [name]) for at in range(len(parts) + 1))
    return endings


def _anchor(text):
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", re.sub(r"[*_`]|\]\([^)]*\)|\[", "", text).strip().lower()))


def _anchors_of(path):
    try:
        with open(path, encoding="utf-8-sig") as handle:
            return {_anchor(match.group(1)) for match in re.finditer(r"(?m)^#{1,6}\s+(.*?)\s*#*$", handle.read())}
    except (OSError, UnicodeDecodeError):
        return set()


def _look(text, page, paths, words):
    folder, fence, block, start = os.path.dirname(os.path.abspath(page)), None, [], 0
    for number, line in enumerate(text.split("\n"), start=1):
        mark = re.match(r"^\s*(```+|~~~+)\s*(\S*)", line)
        if mark and fence is None:
            fence, block, start = (mark.group(1), mark.group(2).lower()), [], number
            continue
        if mark and fence and mark.group(1).startswith(fence[0]) and not mark.group(2):
            yield from _block(fence[1], block, start)
            fence = None
            continue
        if fence:
            block.append(line)
            continue
        for match in re.finditer(r"\[[^\]]*\]\(([^()\s]+)(?:\s+\"[^\"]*\")?\)", re.sub(r"`[^`]*`", "", line)):
            yield from _link(match.group(1), folder, page, number)
        for match in re.finditer(r"`([^`]+)`", line):
            name = match.group(1).strip()
            if _PATHLIKE.match(name) and "*" not in name and not name.startswith("/"):
                if "/" in name and not os.path.exists(os.path.join(folder, name)) and ("/" + name.lstrip("./")) not in paths:
                    yield number, f"the path `{name}` does not exist"
            elif words is not None:
                symbol = re.match(r"^(?:\w+(?:::|\.))*([A-Za-z_]\w{3,})(?:\(.*\))?$", name)
                if symbol and (re.search(r"_|[a-z][A-Z]|\(", name)) and symbol.group(1) not in words:
                    yield number, f"`{name}` does not occur in the code"
    if fence:
        yield start, "this code block is never closed"


def _link(address, folder, page, number):
    if re.match(r"^[a-z][\w+.-]*:", address, re.I):
        return
    path, _, anchor = address.partition("#")
    target = os.path.join(folder, path.split("?")[0].replace("%20", " ")) if path else page
    if not os.path.exists(target):
        yield number, f"the link {path} leads nowhere"
    elif anchor and target.lower().endswith(".md") and anchor.lower() not in _anchors_of(target):
        yield number, f"the link {address} names a heading that does not exist"


def _block(language, lines, start):
    body = "\n".join(lines)
    if language in ("python", "py"):
        code = "\n".join(line[4:] if line.startswith((">>> ", "... ")) else line for line in lines if not re.match(r"^\s*\.\.\.\s*$", line)) if ">>>" not in body else "\n".join(line[4:] for line in lines if line.startswith((">>> ", "... ")))
        try:
            ast.parse(code)
        except (SyntaxError, ValueError) as error:
            yield start + (getattr(error, "lineno", 1) or 1), f"this Python example does not parse: {getattr(error, 'msg', error)}"
    elif language == "json":
        try:
            json.loads(body)
        except ValueError as error:
            if "…" not in body and "..." not in body and "//" not in body:
                yield start + getattr(error, "lineno", 1), f"this JSON example does not parse: {error}"


def main(arguments=None):
    """Parses and does one command; the exit code."""
    parser = argparse.ArgumentParser(prog="docs_check.py", description="Gaps in API documentation, and drift of written documentation. Exit codes: 0 good, 1 findings, 2 unusable input.")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("gaps", help="public symbols without documentation")
    one.add_argument("paths", nargs="+")
    one.add_argument("--min", type=float, default=100, help="exit 0 from this percentage on (default 100)")
    one.add_argument("--tests", action="store_true", help="look at tests too")
    one.add_argument("--limit", type=int, default=60)
    one.add_argument("--json", action="store_true")
    one = commands.add_parser("drift", help="links, paths, examples and names in Markdown that no longer fit")
    one.add_argument("root", help="the repository")
    one.add_argument("pages", nargs="*", help="Markdown files or folders (default: all)")
    one.add_argument("--names", action="store_true", help="also names in backticks that occur nowhere in the code")
    one.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    for path in getattr(options, "paths", None) or getattr(options, "pages", None) or []:
        if not os.path.exists(path):
            print(f"docs_check: {path}: no such file or folder", file=sys.stderr)
            return 2
    return gaps(options) if options.command == "gaps" else drift(options)


if __name__ == "__main__":
    sys.exit(main())
