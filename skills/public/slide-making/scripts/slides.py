#!/usr/bin/env python3
"""Builds a .pptx and an HTML deck from a Markdown outline, checks outlines, and reads the text of a .pptx.

Invariant: exit 0 means done; 1 means that the check found errors; 2 means that nothing was written, and standard error says why.
"""
import argparse
import os
import re
import sys
import xml.etree.ElementTree as tree
import zipfile

sys.dont_write_bytecode = True
from deck_html import write_html  # noqa: E402
from deck_layout import advise  # noqa: E402
from deck_pptx import write_pptx  # noqa: E402
from outline import read_deck  # noqa: E402

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_LARGEST_PART = 32 * 1024 * 1024


def main(arguments=None):
    """Parses and does one of build, check, read; the exit code."""
    parser = argparse.ArgumentParser(prog="slides.py", description="Slides from a Markdown outline. Exit codes: 0 done, 1 errors found, 2 nothing written.")
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="write the deck")
    build.add_argument("outline")
    build.add_argument("--pptx", help="PowerPoint file to write")
    build.add_argument("--html", help="HTML file to write")
    build.add_argument("--strict", action="store_true", help="refuse to build while there are warnings")
    check = commands.add_parser("check", help="say what is wrong with an outline, write nothing")
    check.add_argument("outline")
    read = commands.add_parser("read", help="print the text of an existing .pptx as an outline")
    read.add_argument("pptx")
    options = parser.parse_args(arguments)
    try:
        if options.command == "read":
            return _read(options.pptx)
        return _build(parser, options)
    except OSError as error:
        return _fail(f"{error.filename or ''}: {error.strerror or error}")
    except UnicodeDecodeError:
        return _fail(f"{options.outline} is not UTF-8 text")


def _fail(words):
    print(f"slides: {words}", file=sys.stderr)
    return 2


def _build(parser, options):
    deck = read_deck(options.outline)
    advise(deck)
    targets = [getattr(options, "pptx", None), getattr(options, "html", None)]
    if targets[0]:
        for slide in deck.slides:
            for block in slide.blocks():
                if block["kind"] == "image" and block["format"] == "svg":
                    deck.complain("warning", block["line"], f"picture {block['path']}: a .pptx cannot hold SVG from this script; it shows the description instead (use PNG, or a ```chart block)")
    errors = 0
    for problem in sorted(deck.problems, key=lambda problem: problem.line):
        errors += problem.level == "error" or bool(getattr(options, "strict", False))
        print(f"{options.outline}:{problem.line}: {problem.level}: {problem.words}", file=sys.stderr)
    counts = {kind: sum(1 for slide in deck.slides if slide.kind == kind) for kind in ("title", "section", "content")}
    print(f"{len(deck.slides)} slides ({counts['section']} sections, {counts['content']} with content), {len(deck.problems)} problems")
    if options.command == "check":
        return 1 if errors else 0
    if not any(targets):
        parser.error("say what to write: --pptx FILE, --html FILE or both")
    if errors:
        return _fail("nothing written; mend the errors above first")
    for target, write in zip(targets, (write_pptx, write_html)):
        if target:
            os.makedirs(os.path.dirname(os.path.abspath(target)), exist_ok=True)
            write(deck, target)
            print(f"wrote {target}")
    return 0


def _read(path):
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            for number, name in enumerate(_slide_order(archive), start=1):
                _print_slide(archive, names, number, name)
    except (zipfile.BadZipFile, KeyError, tree.ParseError) as error:
        return _fail(f"{path} is not a readable .pptx ({error})")
    return 0


def _part(archive, name):
    if archive.getinfo(name).file_size > _LARGEST_PART:
        raise KeyError(f"{name} is larger than {_LARGEST_PART} bytes")
    data = archive.read(name)
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise KeyError(f"{name} declares entities")
    return tree.fromstring(data)


def _slide_order(archive):
    targets = {entry.get("Id"): entry.get("Target") for entry in _part(archive, "ppt/_rels/presentation.xml.rels")}
    return ["ppt/" + targets[slide.get(_R + "id")].lstrip("/").replace("ppt/", "", 1) for slide in _part(archive, "ppt/presentation.xml").iter(_P + "sldId")]


def _print_slide(archive, names, number, name):
    title, lines = "", []
    for shape in _part(archive, name).iter():
        if shape.tag == _P + "sp":
            place = shape.find(f".//{_P}ph")
            kind = place.get("type", "body") if place is not None else "box"
            words = _paragraphs(shape)
            if kind in ("title", "ctrTitle"):
                title = " ".join(text for _, text in words)
            elif kind not in ("sldNum", "ftr", "dt"):
                lines += ["  " * level + "- " + text for level, text in words]
        elif shape.tag == _A + "tr":
            lines.append("| " + " | ".join(" ".join(text for _, text in _paragraphs(cell)) for cell in shape.iter(_A + "tc")) + " |")
    print(f"## {title or f'Slide {number}'}\n")
    print("\n".join(lines) + ("\n" if lines else ""))
    rels = re.sub(r"slides/(slide\d+\.xml)$", r"slides/_rels/\1.rels", name)
    if rels in names:
        for entry in _part(archive, rels):
            if entry.get("Type", "").endswith("/notesSlide"):
                notes = _part(archive, "ppt/" + entry.get("Target").replace("../", ""))
                words = [text for shape in notes.iter(_P + "sp") if (shape.find(f".//{_P}ph") is not None and shape.find(f".//{_P}ph").get("type") == "body") for _, text in _paragraphs(shape)]
                print("Notes: " + "\n".join(words) + "\n")


def _paragraphs(shape):
    found = []
    for paragraph in shape.iter(_A + "p"):
        text = "".join(piece.text or "" for piece in paragraph.iter(_A + "t")).strip()
        style = paragraph.find(_A + "pPr")
        if text:
            found.append((int(style.get("lvl", "0")) if style is not None else 0, text))
    return found


if __name__ == "__main__":
    sys.exit(main())
