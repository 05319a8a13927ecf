#!/usr/bin/env python3
"""Starts, checks and packs skills.

Invariant: 'pack' writes only what 'lint' found free of errors; exit 0 is good, 1 means findings, 2 means unusable input.
"""
import argparse
import json
import os
import re
import sys
import zipfile

sys.dont_write_bytecode = True
from skill_lint import RESERVED, lint  # noqa: E402

TEMPLATES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "assets")


def new(options):
    """Writes a new package from the templates."""
    if not re.match(r"^[a-z0-9]+(-[a-z0-9]+)*$", options.name) or len(options.name) > 64 or options.name in RESERVED:
        return _fail(f"{options.name!r} is no name for a skill: small letters, digits, single hyphens, at most 64, and none of {', '.join(RESERVED)}")
    folder = os.path.join(options.output, options.name)
    if os.path.exists(folder):
        return _fail(f"{folder} exists already; it is left as it is")
    title = options.name.replace("-", " ").capitalize()
    description = " ".join(options.description.split())
    quoted = '"' + description.replace("\\", "\\\\").replace('"', '\\"') + '"'
    places = [("SKILL.template.md", "SKILL.md")]
    if options.script:
        places += [("script.template.py", f"scripts/{options.name.replace('-', '_')}.py"), ("check.template.sh", "tests/check.sh")]
    for template, target in places:
        with open(os.path.join(TEMPLATES, template), encoding="utf-8") as handle:
            text = handle.read()
        for mark, value in (("@NAME@", options.name), ("@TITLE@", title), ("@DESCRIPTION@", quoted), ("@MODULE@", options.name.replace("-", "_"))):
            text = text.replace(mark, value)
        path = os.path.join(folder, target)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as handle:
            handle.write(text)
        if target.endswith((".py", ".sh")):
            os.chmod(path, 0o755)
        print(f"wrote {path}")
    print("next: fill in SKILL.md, then: skill.py lint " + folder)
    return 0


def check(options):
    """Prints the findings of one or more packages."""
    worst, everything = 0, []
    for folder in options.folders:
        if not os.path.isdir(folder):
            return _fail(f"{folder} is not a folder")
        found = lint(folder, options.against)
        everything += [{"folder": folder, "level": level, "file": file, "line": line, "words": words} for level, file, line, words in found]
        worst = max([worst] + [{"error": 2, "warning": 1, "hint": 0}[level] for level, _, _, _ in found])
    if options.json:
        print(json.dumps(everything, ensure_ascii=False, indent=1))
    else:
        for finding in everything:
            print(f"{os.path.join(finding['folder'], finding['file'])}:{finding['line']}: {finding['level']}: {finding['words']}")
        counts = [sum(1 for finding in everything if finding["level"] == level) for level in ("error", "warning", "hint")]
        print(f"{len(options.folders)} skills: {counts[0]} errors, {counts[1]} warnings, {counts[2]} hints")
    return 1 if worst == 2 or (options.strict and worst) else 0


def pack(options):
    """Writes a .skill archive with fixed times, so that the same package gives the same bytes."""
    folder = options.folder.rstrip("/")
    if not os.path.isdir(folder):
        return _fail(f"{folder} is not a folder")
    errors = [finding for finding in lint(folder) if finding[0] == "error"]
    for level, file, line, words in errors:
        print(f"{os.path.join(folder, file)}:{line}: {level}: {words}", file=sys.stderr)
    if errors:
        return _fail("nothing packed; mend the errors first")
    name = os.path.basename(os.path.abspath(folder))
    output = options.output or f"{name}.skill"
    os.makedirs(os.path.dirname(os.path.abspath(output)), exist_ok=True)
    count = 0
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        for here, folders, names in os.walk(folder):
            folders[:] = sorted(entry for entry in folders if not entry.startswith(".") and entry != "__pycache__")
            for entry in sorted(names):
                path = os.path.join(here, entry)
                if entry.startswith(".") or os.path.abspath(path) == os.path.abspath(output):
                    continue
                info = zipfile.ZipInfo(f"{name}/{os.path.relpath(path, folder).replace(os.sep, '/')}", (2020, 1, 1, 0, 0, 0))
                info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, (0o755 if os.access(path, os.X_OK) else 0o644) << 16
                with open(path, "rb") as handle:
                    archive.writestr(info, handle.read())
                count += 1
    print(f"{output}: {count} files, {os.path.getsize(output):,} bytes")
    return 0


def _fail(words):
    print(f"skill: {words}", file=sys.stderr)
    return 2


def main(arguments=None):
    """Parses and does one command; the exit code."""
    parser = argparse.ArgumentParser(prog="skill.py", description="Start, check and pack skills. Exit codes: 0 good, 1 findings, 2 unusable input.")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("new", help="write a new package to fill in")
    one.add_argument("name")
    one.add_argument("--description", required=True, help="what it does and when to use it")
    one.add_argument("--script", action="store_true", help="with a script and its test")
    one.add_argument("-o", "--output", default=".", help="folder to put it in")
    one = commands.add_parser("lint", help="say what is wrong with packages")
    one.add_argument("folders", nargs="+")
    one.add_argument("--against", metavar="ROOT", help="compare the description with the skills in this folder")
    one.add_argument("--strict", action="store_true", help="warnings count too")
    one.add_argument("--json", action="store_true")
    one = commands.add_parser("pack", help="write a .skill archive")
    one.add_argument("folder")
    one.add_argument("-o", "--output")
    options = parser.parse_args(arguments)
    try:
        return {"new": new, "lint": check, "pack": pack}[options.command](options)
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}")


if __name__ == "__main__":
    sys.exit(main())
