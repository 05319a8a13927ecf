"""Fills a scaffold ('fill'), writes broken packages ('break') and checks findings and archives ('check').

Invariant: each broken package has the one mistake it is named after, except 'many'.
"""
import json
import os
import sys
import zipfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scripts"))
from front_matter import parse  # noqa: E402

step, place = sys.argv[1], sys.argv[2]
checks = 0


def expect(good, words):
    global checks
    checks += 1
    if not good:
        sys.exit(f"FAIL {words}")


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as handle:
        handle.write(text if isinstance(text, bytes) else text.encode("utf-8"))


def read(path):
    with open(path, encoding="utf-8") as handle:
        return handle.read()


def fill():
    path = os.path.join(place, "SKILL.md")
    write(path, read(path).replace("TODO: ", "").replace("TODO", "someone"))


def break_packages():
    good = "name: {name}\ndescription: Does a thing that is described here at some length. Use when the user wants the thing done.\n"
    body = "---\n\n# Body\n\nText.\n"
    write(f"{place}/no-front/SKILL.md", "# Only a body\n")
    write(f"{place}/open-front/SKILL.md", "---\n" + good.format(name="open-front"))
    write(f"{place}/colon-in-value/SKILL.md", "---\nname: colon-in-value\ndescription: Use when: always and for everything that is there\n" + body)
    write(f"{place}/other-name/SKILL.md", "---\n" + good.format(name="another-name") + body)
    write(f"{place}/twice/SKILL.md", "---\n" + good.format(name="twice") + "name: twice\n" + body)
    write(f"{place}/indented/SKILL.md", "---\n  name: indented\n" + body)
    many = f"{place}/many"
    write(f"{many}/SKILL.md", "---\nname: many\ndescription: I count words for you in text files, all lines and words, how long a text is\ncolour: red\nallowed-tools: bash\n---\n\nRead references/gone.md, `references/far.md` and references/hidden.md.\n")
    write(f"{many}/references/lonely.md", "nobody comes\n")
    write(f"{many}/references/far.md", "start\n" + "\n" * 200 + "end\n")
    write(f"{many}/references/hidden.md", "left \u202e right\n")
    write(f"{many}/scripts/bad.py", "def f(:\n")
    write(f"{many}/scripts/imports.py", "import json, numpy\nimport bad\nif __name__ == '__main__':\n    print(json, numpy, bad)\n")
    write(f"{many}/assets/blob.bin", b"PK\x03\x04rest")
    write(f"{many}/assets/key.txt", "line\nAKIA" + "A1B2C3D4E5F6G7H8\n")
    write(f"{many}/inner/SKILL.md", "---\n---\n")
    os.symlink("SKILL.md", f"{many}/link.md")


def check():
    for name, line, words in (("no-front", 1, "does not begin with '---'"), ("open-front", 1, "not closed"), ("colon-in-value", 3, "put the value in quotation marks"), ("other-name", 2, "but the folder is called 'other-name'"), ("twice", 4, "is there twice"), ("indented", 2, "indented by mistake")):
        text = read(os.path.join(place, f"lint-{name}.txt"))
        expect(f"SKILL.md:{line}: error: " in text and words in text, f"{name}: {text}")
    findings = json.loads(read(os.path.join(place, "many.json")))
    expect(not any(finding["file"] == "scripts/imports.py" and "imports json" in finding["words"] or "imports bad" in finding["words"] for finding in findings), "the standard library and neighbours are fine")
    with zipfile.ZipFile(os.path.join(place, "word-counting.skill")) as archive:
        names = archive.namelist()
        expect(names == ["word-counting/SKILL.md", "word-counting/scripts/word_counting.py", "word-counting/tests/check.sh"], f"archive {names}")
        expect(archive.getinfo(names[1]).external_attr >> 16 & 0o111, "scripts stay executable")
        expect("description: \"Counts words: \\\"all\\\" of them" in archive.read(names[0]).decode("utf-8"), "quotation marks in the description")
    values, _ = parse(["name: a", "description: >-", "  two", "  lines", "", "  more", "metadata:", "  k: v", "allowed-tools: [bash, \"read_file\"]", "list:", "  - x", "  - y z", "quoted: 'it''s'", "long: one", "  two  # comment"])
    expect(values == {"name": "a", "description": "two lines\n\nmore".replace("\n\n", "\n\n"), "metadata": {"k": "v"}, "allowed-tools": ["bash", "read_file"], "list": ["x", "y z"], "quoted": "it's", "long": "one two"}, f"front matter {values}")
    print(f"ok   {checks} facts of packages")


{"fill": fill, "break": break_packages, "check": check}[step]()
