"""The rules of a good skill package.

Invariant: rules only read; each finding is (level, file, line, words), and an error means that the skill would not work or is not safe to hand out.
"""
import ast
import os
import re
import sys

from front_matter import FrontMatterError, parse, split

KNOWN = ("name", "description", "license", "version", "author", "compatibility", "metadata", "allowed-tools", "required-secrets", "secrets-autonomous", "disable-model-invocation", "agents")
RESERVED = ("bootstrap", "goal", "help", "memory", "models", "new", "status")
FOLDERS = ("references", "scripts", "assets", "templates", "tests")
_NAME = re.compile(r"^[a-z0-9]+(-[a-z0-9]+)*$")
_SECRETS = re.compile(r"AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}|xox[abprs]-[0-9A-Za-z-]{16}|-----BEGIN [A-Z ]*PRIVATE " + r"KEY-----")
_OPAQUE = {b"PK\x03\x04": "an archive", b"\x1f\x8b": "an archive", b"\x7fELF": "a program", b"MZ": "a program", b"7z\xbc\xaf": "an archive"}
_STOP = set("the a an and or of to in for with from on by is are be as at it its this that use when user asks wants used any into not but one other them they".split())


def lint(folder, against=None):
    """All findings about a package; against is a folder of other skills to compare with."""
    found = []
    add = lambda level, file, line, words: found.append((level, file, line, words))  # noqa: E731
    manifest = os.path.join(folder, "SKILL.md")
    if not os.path.isfile(manifest):
        near = [name for name in os.listdir(folder) if name.lower() == "skill.md"]
        add("error", near[0] if near else "SKILL.md", 1, "the file must be called SKILL.md" if near else "there is no SKILL.md in this folder")
        return found
    files = _files(folder, add)
    try:
        with open(manifest, encoding="utf-8") as handle:
            text = handle.read()
        lines, start, body = split(text)
        values, places = parse(lines)
    except UnicodeDecodeError:
        add("error", "SKILL.md", 1, "is not UTF-8 text")
        return found
    except FrontMatterError as error:
        add("error", "SKILL.md", error.line, error.words)
        return found
    _front(os.path.basename(os.path.abspath(folder)), values, places, add)
    _body(body, start, files, os.path.basename(os.path.abspath(folder)), add)
    for name in files:
        _file(folder, name, values, add)
    if any(name.startswith("scripts/") for name in files) and "tests/check.sh" not in files:
        add("warning", "tests/check.sh", 1, "there are scripts, but no test that runs them")
    if against:
        _overlap(folder, values, against, add)
    order = {"error": 0, "warning": 1, "hint": 2}
    return sorted(found, key=lambda finding: (order[finding[0]], finding[1], finding[2]))


def _files(folder, add):
    found = []
    for here, folders, names in os.walk(folder):
        inner = os.path.relpath(here, folder)
        for name in list(folders) + names:
            path = os.path.normpath(os.path.join(inner, name))
            if os.path.islink(os.path.join(here, name)):
                add("error", path, 1, "is a link; a package holds plain files")
        if "__pycache__" in folders:
            add("error", os.path.normpath(os.path.join(inner, "__pycache__")), 1, "compiled files do not belong into a package; remove the folder")
        folders[:] = sorted(name for name in folders if name not in ("__pycache__", ".git"))
        found += [os.path.normpath(os.path.join(inner, name)).replace(os.sep, "/") for name in sorted(names) if not os.path.islink(os.path.join(here, name))]
    for name in found:
        top = name.split("/")[0]
        if "/" in name and top not in FOLDERS:
            add("warning", name, 1, f"unusual folder {top!r}; known are {', '.join(FOLDERS)}")
        if os.path.basename(name).startswith("."):
            add("warning", name, 1, "is hidden in listings; leave it out")
        if name != "SKILL.md" and os.path.basename(name) == "SKILL.md":
            add("error", name, 1, "a second SKILL.md; one package is one skill")
    return found


def _front(folder, values, places, add):
    where = lambda key: places.get(key, 1)  # noqa: E731
    name, description = values.get("name", ""), values.get("description", "")
    if not name:
        add("error", "SKILL.md", 1, "the front matter has no name")
    elif not isinstance(name, str) or not _NAME.match(name) or len(name) > 64:
        add("error", "SKILL.md", where("name"), f"name {name!r}: use small letters, digits and single hyphens, at most 64")
    elif name != folder:
        add("error", "SKILL.md", where("name"), f"name is {name!r}, but the folder is called {folder!r}")
    if name in RESERVED:
        add("error", "SKILL.md", where("name"), f"/{name} means something else; choose another name")
    if not isinstance(description, str) or not description.strip():
        add("error", "SKILL.md", where("description"), "the front matter has no description")
    else:
        _description(description, where("description"), add)
    for key in values:
        if key not in KNOWN:
            add("warning", "SKILL.md", where(key), f"unknown key {key!r}; own data belongs below 'metadata'")
    if len(str(values.get("compatibility", ""))) > 500:
        add("error", "SKILL.md", where("compatibility"), "compatibility is longer than 500 characters")
    tools = values.get("allowed-tools")
    if tools is not None and (not isinstance(tools, list) or not all(isinstance(tool, str) and tool for tool in tools)):
        add("error", "SKILL.md", where("allowed-tools"), "allowed-tools must be a list of names")
    for key, value in values.items():
        if re.search(r"\b(TODO|TBD|FIXME)\b", str(value)):
            add("error", "SKILL.md", where(key), f"a placeholder is left in {key}")
    if "license" not in values:
        add("hint", "SKILL.md", 1, "no license; others will not know whether they may use it")


def _description(text, line, add):
    if len(text) > 1024:
        add("error", "SKILL.md", line, f"the description has {len(text)} characters, at most 1024 are read")
    elif len(text) > 300:
        add("warning", "SKILL.md", line, f"the description has {len(text)} characters; beyond 300 it costs every conversation")
    if re.search(r"[<>]", text):
        add("error", "SKILL.md", line, "the description must not contain < or >")
    if len(text.split()) < 12:
        add("warning", "SKILL.md", line, "the description is too short to be chosen by; say what it does and when to use it")
    if not re.search(r"\b(use (it |this |them )?(when|for|whenever|if)|when the user|whenever)\b", text, re.I):
        add("warning", "SKILL.md", line, "the description does not say when to use the skill ('Use when …')")
    if re.search(r"\b(I|I'll|we|my|our)\b", text) or re.search(r"\byou(r)?\b", text, re.I):
        add("warning", "SKILL.md", line, "write the description in the third person: it is read beside those of other skills")


def _body(body, start, files, skill, add):
    lines = body.rstrip("\n").split("\n")
    if not body.strip():
        add("error", "SKILL.md", start, "there is no body")
        return
    if len(lines) > 150:
        add("warning", "SKILL.md", start, f"the body has {len(lines)} lines; beyond 150 move details to references/")
    prose = re.sub(r"```.*?```", lambda match: "\n" * match.group().count("\n"), body, flags=re.S)
    for at, line in enumerate(prose.split("\n")):
        for match in re.finditer(r"\b(TODO|TBD|FIXME|XXX)\b|<(describe|insert|your|placeholder)[^>]*>", line):
            add("error", "SKILL.md", start + at, f"a placeholder is left: {match.group(0)}")
    for at, line in enumerate(lines):
        for match in re.finditer(r"(?<![\w/.-])(?:/mnt/skills/\w+/([\w-]+)/)?((?:references|scripts|assets|templates)/[\w./-]*\w)", line):
            foreign = match.group(1) not in (None, skill)
            if not foreign and match.group(2) not in files and not any(name.startswith(match.group(2) + "/") for name in files):
                add("error", "SKILL.md", start + at, f"{match.group(2)} does not exist")
    for name in files:
        if name.startswith("references/") and name not in body and os.path.basename(name) not in body:
            add("warning", name, 1, "is never mentioned in SKILL.md, so nobody will read it")
    if not re.search(r"(?im)^#+ .*(done when|definition of done|finished when)", body):
        add("hint", "SKILL.md", start, "no section says when the work is done")


def _file(folder, name, values, add):
    path = os.path.join(folder, name)
    size = os.path.getsize(path)
    if size > 5 * 1024 * 1024:
        add("warning", name, 1, f"has {size >> 20} MiB; packages should be small")
    with open(path, "rb") as handle:
        data = handle.read(8 * 1024 * 1024)
    for magic, what in _OPAQUE.items():
        if data.startswith(magic) and not (magic == b"MZ" and b"\x00" not in data[:200]):
            add("error", name, 1, f"is {what}; put in what it holds as plain files")
    text = data.decode("utf-8", errors="replace")
    match = _SECRETS.search(text)
    if match:
        add("error", name, text.count("\n", 0, match.start()) + 1, "looks like a secret key; remove it and make a new one")
    if _far(text):
        add("error", name, 1, "text stands behind more than a hundred empty lines")
    if re.search(r"[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]", text):
        add("error", name, 1, "holds invisible characters that change what is read")
    if name.startswith("scripts/"):
        _script(folder, name, text, values, add)
    elif name.startswith("references/") and len(text.split("\n")) > 400:
        add("warning", name, 1, "is longer than 400 lines; split it so that it can be read on demand")


def _far(text):
    """Whether text follows a stretch of empty lines that nobody scrolls through."""
    empty, begun = 0, False
    for line in text.split("\n"):
        if line.strip():
            if begun and empty > 100:
                return True
            empty, begun = 0, True
        else:
            empty += 1
    return False


def _script(folder, name, text, values, add):
    if name.endswith(".py"):
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError) as error:
            add("error", name, getattr(error, "lineno", 1) or 1, f"does not parse: {getattr(error, 'msg', error)}")
            return
        runs = any(isinstance(node, ast.If) and "__name__" in ast.dump(node.test) for node in tree.body)
        if runs and "argparse" not in text and "--help" not in text:
            add("warning", name, 1, "has no --help")
        known = getattr(sys, "stdlib_module_names", None)
        if known:
            beside = {entry[:-3] for entry in os.listdir(os.path.join(folder, os.path.dirname(name))) if entry.endswith(".py")}
            _imports(name, tree, set(known) | beside, values, add)
    elif name.endswith(".sh") and not text.startswith("#!"):
        add("warning", name, 1, "does not begin with #!")


def _imports(name, tree, known, values, add):
    for node in ast.walk(tree):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        for module in modules:
            top = module.split(".")[0]
            if top and top not in known and top.lower() not in str(values.get("compatibility", "")).lower():
                add("warning", name, node.lineno, f"imports {top}, which is not in the standard library; name it in 'compatibility' or do without")


def _words(text):
    return {word for word in re.findall(r"[a-z]{3,}", text.lower()) if word not in _STOP}


def _overlap(folder, values, against, add):
    own = _words(str(values.get("description", "")))
    for other in sorted(os.listdir(against)) if os.path.isdir(against) else []:
        path = os.path.join(against, other, "SKILL.md")
        if other == os.path.basename(os.path.abspath(folder)) or not os.path.isfile(path):
            continue
        try:
            with open(path, encoding="utf-8") as handle:
                theirs = _words(str(parse(split(handle.read())[0])[0].get("description", "")))
        except (OSError, UnicodeDecodeError, FrontMatterError):
            continue
        share = len(own & theirs) / max(1, min(len(own), len(theirs)))
        if share > 0.5:
            add("warning", "SKILL.md", 1, f"its description shares {share:.0%} of its words with {other!r}; agents will mix them up ({', '.join(sorted(own & theirs)[:8])})")
