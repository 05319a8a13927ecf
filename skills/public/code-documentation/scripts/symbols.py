"""Finds the public symbols of source files and whether they are documented: Python by its syntax tree, others by their usual forms.

Invariant: a file that cannot be read or parsed is reported, never silently skipped.
"""
import ast
import os
import re

# Each language: endings, (kind, pattern with the name in group 'name'), and how a comment above marks documentation.
_NAME = r"(?P<name>[A-Za-z_$][\w$]*)"
LANGUAGES = {
    "rust": {"ends": (".rs",), "doc": r"^\s*(///|#\[doc|//!)", "skip": r"^\s*#!?\[(?!doc)", "forms": (
        ("function", rf"^\s*pub\s+(?:const\s+|async\s+|unsafe\s+|extern\s+\"[^\"]*\"\s+)*fn\s+{_NAME}"), ("type", rf"^\s*pub\s+(?:struct|enum|union|type)\s+{_NAME}"),
        ("trait", rf"^\s*pub\s+(?:unsafe\s+)?trait\s+{_NAME}"), ("constant", rf"^\s*pub\s+(?:const|static)\s+(?!fn\b){_NAME}\s*:"), ("macro", rf"^\s*macro_rules!\s*{_NAME}"))},
    "go": {"ends": (".go",), "doc": r"^\s*(//|\*/)", "skip": r"^$a", "forms": (
        ("function", r"^func\s+(?P<name>[A-Z]\w*)\s*[\[(]"), ("method", r"^func\s+\([^)]*\)\s+(?P<name>[A-Z]\w*)\s*\("), ("type", r"^type\s+(?P<name>[A-Z]\w*)"), ("constant", r"^(?:const|var)\s+(?P<name>[A-Z]\w*)"))},
    "typescript": {"ends": (".ts", ".tsx", ".mts", ".cts"), "doc": r"\*/\s*$", "skip": r"^\s*@", "forms": (
        ("function", rf"^export\s+(?:default\s+)?(?:declare\s+)?(?:async\s+)?function\*?\s+{_NAME}"), ("class", rf"^export\s+(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?class\s+{_NAME}"),
        ("type", rf"^export\s+(?:declare\s+)?(?:interface|type|enum|const\s+enum)\s+{_NAME}"), ("value", rf"^export\s+(?:declare\s+)?(?:const|let|var)\s+{_NAME}"))},
    "javascript": {"ends": (".js", ".jsx", ".mjs", ".cjs"), "doc": r"\*/\s*$", "skip": r"^\s*@", "forms": (
        ("function", rf"^export\s+(?:default\s+)?(?:async\s+)?function\*?\s+{_NAME}"), ("class", rf"^export\s+(?:default\s+)?class\s+{_NAME}"), ("value", rf"^export\s+(?:const|let|var)\s+{_NAME}"), ("value", rf"^(?:module\.)?exports\.{_NAME}\s*="))},
    "java": {"ends": (".java",), "doc": r"\*/\s*$", "skip": r"^\s*@", "forms": (
        ("type", rf"^\s*public\s+(?:(?:abstract|final|static|sealed|strictfp)\s+)*(?:class|interface|enum|record|@interface)\s+{_NAME}"),
        ("method", rf"^\s*public\s+(?:(?:abstract|final|static|synchronized|default|native)\s+)*(?:<[^>]+>\s+)?[\w.<>\[\],?& ]+?\s+{_NAME}\s*\("))},
    "kotlin": {"ends": (".kt", ".kts"), "doc": r"\*/\s*$", "skip": r"^\s*@", "forms": (
        ("function", rf"^(?:public\s+|open\s+|suspend\s+|inline\s+|operator\s+)*fun\s+(?:<[^>]+>\s*)?(?:[\w<>.?]+\.)?{_NAME}\s*\("), ("type", rf"^(?:public\s+|open\s+|abstract\s+|data\s+|sealed\s+|enum\s+|value\s+)*(?:class|interface|object)\s+{_NAME}"))},
    "csharp": {"ends": (".cs",), "doc": r"^\s*///", "skip": r"^\s*\[", "forms": (
        ("type", rf"^\s*public\s+(?:(?:abstract|sealed|static|partial|readonly)\s+)*(?:class|interface|enum|struct|record)\s+{_NAME}"),
        ("member", rf"^\s*public\s+(?:(?:abstract|virtual|override|static|async|sealed|readonly)\s+)*[\w.<>\[\],? ]+?\s+{_NAME}\s*[({{]"))},
    "c": {"ends": (".h", ".hpp", ".hh"), "doc": r"(\*/\s*$|^\s*///|^\s*//!)", "skip": r"^\s*(template|\[\[|__attribute__)", "forms": (
        ("function", rf"^(?!\s*(?:return|else|typedef|#|//))[A-Za-z_][\w\s*&:<>,]*?[\s*&]{_NAME}\s*\([^;{{]*\)\s*(?:const)?\s*(?:noexcept)?\s*;"), ("type", rf"^(?:typedef\s+)?(?:struct|class|enum(?:\s+class)?|union)\s+{_NAME}\s*[:{{]"), ("macro", rf"^#define\s+{_NAME}\("))},
    "ruby": {"ends": (".rb",), "doc": r"^\s*#(?!!)", "skip": r"^$a", "forms": (("class", r"^\s*(?:class|module)\s+(?P<name>[A-Z][\w:]*)"), ("method", r"^\s*def\s+(?P<name>(?:self\.)?[a-z]\w*[?!=]?)"))},
    "php": {"ends": (".php",), "doc": r"\*/\s*$", "skip": r"^\s*#\[", "forms": (("class", rf"^(?:(?:abstract|final|readonly)\s+)*(?:class|interface|trait|enum)\s+{_NAME}"), ("method", rf"^\s*public\s+(?:static\s+)?function\s+{_NAME}"), ("function", rf"^function\s+{_NAME}"))},
    "shell": {"ends": (".sh", ".bash"), "doc": r"^\s*#(?!!)", "skip": r"^$a", "forms": (("function", r"^(?:function\s+)?(?P<name>[a-z][\w-]*)\s*\(\)\s*\{"),)},
}
SKIPPED_FOLDERS = {".git", "node_modules", "target", "dist", "build", "vendor", ".venv", "venv", "__pycache__", ".tox", "third_party", ".mypy_cache", "site-packages"}
_LARGEST = 2 * 1024 * 1024


class Symbol:
    """A public name, where it stands, and what is documented of it."""

    def __init__(self, path, line, kind, name, documented, lacks=()):
        self.path, self.line, self.kind, self.name, self.documented, self.lacks = path, line, kind, name, documented, list(lacks)


def language_of(path):
    """The language of a file by its ending, or None."""
    if path.endswith((".py", ".pyi")):
        return "python"
    if re.search(r"\.(min|d|pb|generated)\.\w+$|_pb2\.py$|_test\.go$", path):
        return None
    return next((name for name, form in LANGUAGES.items() if path.endswith(form["ends"])), None)


def source_files(paths, include_tests=False):
    """Every source file below the paths, in order."""
    for path in paths:
        if os.path.isfile(path):
            yield path
            continue
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS and not name.startswith(".") and (include_tests or name not in ("tests", "test", "__tests__", "spec")))
            for name in sorted(names):
                if language_of(name) and (include_tests or not re.match(r"^(test_.*|.*_test|conftest|.*\.(test|spec))\.\w+$", name)):
                    yield os.path.join(folder, name)


def symbols_of(path):
    """(language, symbols) of one file; OSError, ValueError and SyntaxError pass through."""
    language = language_of(path)
    if os.path.getsize(path) > _LARGEST:
        raise ValueError("larger than 2 MiB; generated?")
    with open(path, encoding="utf-8-sig") as handle:
        text = handle.read()
    return language, (_python(path, text) if language == "python" else _generic(path, text, LANGUAGES[language]))


def _python(path, text):
    tree = ast.parse(text, filename=path)
    exported = None
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets) and isinstance(node.value, (ast.List, ast.Tuple)):
            exported = {entry.value for entry in node.value.elts if isinstance(entry, ast.Constant)}
    found = []
    if text.strip():
        found.append(Symbol(path, 1, "module", os.path.splitext(os.path.basename(path))[0], bool(ast.get_docstring(tree))))
    _python_body(path, tree.body, "", exported, found)
    return found


def _python_body(path, body, prefix, exported, found):
    for node in body:
        if isinstance(node, (ast.If, ast.Try)):
            _python_body(path, list(ast.iter_child_nodes(node)), prefix, exported, found)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        public = node.name in exported if exported is not None and not prefix else not node.name.startswith("_")
        marks = {getattr(mark, "attr", getattr(mark, "id", "")) for mark in node.decorator_list}
        if not public or marks & {"overload", "setter", "deleter", "override"}:
            continue
        doc = ast.get_docstring(node) or ""
        kind = "class" if isinstance(node, ast.ClassDef) else "method" if prefix else "function"
        found.append(Symbol(path, node.lineno, kind, prefix + node.name, bool(doc.strip()), _python_lacks(node, doc)))
        if isinstance(node, ast.ClassDef):
            _python_body(path, node.body, f"{prefix}{node.name}.", None, found)


def _python_lacks(node, doc):
    """Parameters, results and exceptions that a longer docstring forgets; one-line docstrings are left in peace."""
    if isinstance(node, ast.ClassDef) or len(doc.strip().splitlines()) < 3:
        return []
    lacks = [f"parameter {name.arg}" for name in node.args.posonlyargs + node.args.args + node.args.kwonlyargs if name.arg not in ("self", "cls") and not name.arg.startswith("_") and not re.search(rf"\b{re.escape(name.arg)}\b", doc)]
    raised = {getattr(inner.exc.func if isinstance(inner.exc, ast.Call) else inner.exc, "id", "") for inner in ast.walk(node) if isinstance(inner, ast.Raise) and inner.exc is not None}
    return lacks + [f"exception {name}" for name in sorted(raised) if name and name[0].isupper() and name not in doc]


def _generic(path, text, form):
    lines = text.split("\n")
    found, inside_comment = [], False
    for at, line in enumerate(lines):
        bare = line.strip()
        if inside_comment:
            inside_comment = "*/" not in bare
            continue
        if bare.startswith("/*") and "*/" not in bare:
            inside_comment = True
            continue
        if re.match(r"^(//|\*|#\s)", bare):
            continue
        for kind, pattern in form["forms"]:
            match = re.match(pattern, line)
            if match and match.group("name") not in ("if", "for", "while", "switch", "return", "new"):
                found.append(Symbol(path, at + 1, kind, match.group("name"), _documented(lines, at, form)))
                break
    return found


def _documented(lines, at, form):
    above = at - 1
    while above >= 0 and lines[above].strip() and re.match(form["skip"], lines[above]):
        above -= 1
    return above >= 0 and bool(re.search(form["doc"], lines[above]))
