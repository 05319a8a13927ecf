"""A small reading of CSS: rules, simple selectors, custom properties, inheritance of colours.

Invariant: a selector that is not understood matches nothing, so a finding is never based on a guess.
"""
import re


def rules_of(text, scheme="light"):
    """[(selector, {property: value}, order)] that hold without interaction in a colour scheme on a screen."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    found = []
    _collect(text, scheme, found)
    return found


def _collect(text, scheme, found):
    at = 0
    while True:
        brace = text.find("{", at)
        if brace < 0:
            return
        head = text[at:brace].split(";")[-1].strip()
        depth, end = 1, brace + 1
        while end < len(text) and depth:
            depth += (text[end] == "{") - (text[end] == "}")
            end += 1
        body = text[brace + 1:end - 1] if depth == 0 else text[brace + 1:]
        at = end
        if head.startswith("@"):
            if _applies(head, scheme):
                _collect(body, scheme, found)
            continue
        declared = declarations(body)
        for selector in re.split(r",(?![^(]*\))", head):
            found.append((selector.strip(), declared, len(found)))


def _applies(head, scheme):
    words = head.lower()
    if words.startswith(("@supports", "@layer")):
        return True
    if not words.startswith("@media"):
        return False
    if "prefers-color-scheme" in words:
        return f"prefers-color-scheme: {scheme}" in re.sub(r":\s*", ": ", words)
    return not re.search(r"print|prefers-|max-width|hover|forced-colors", words)


def declarations(body):
    """{property: value} of a rule's body."""
    found = {}
    for part in re.split(r";(?![^(]*\))", re.sub(r"\{[^{}]*\}", "", body)):
        name, colon, value = part.partition(":")
        if colon:
            found[name.strip().lower() if not name.strip().startswith("--") else name.strip()] = re.sub(r"\s*!important\s*$", "", value.strip())
    return found


def _simple(part):
    """(tag, id, classes, attributes) of a compound selector, or None when it is not understood."""
    if "::" in part or re.search(r":(?!link|root)", part):
        return None
    part = part.replace(":link", "")
    if part == ":root":
        return ("html", None, [], [])
    attributes = re.findall(r"\[([\w-]+)(?:=[\"']?([^\]\"']*)[\"']?)?\]", part)
    part = re.sub(r"\[[^\]]*\]", "", part)
    match = re.match(r"^([\w-]*|\*)((?:[.#][\w-]+)*)$", part)
    if not match:
        return None
    extras = re.findall(r"([.#])([\w-]+)", match.group(2))
    return (match.group(1) if match.group(1) not in ("", "*") else None, next((name for sign, name in extras if sign == "#"), None), [name for sign, name in extras if sign == "."], attributes)


def _fits(simple, element):
    tag, name, classes, attributes = simple
    return ((tag is None or element.tag == tag.lower()) and (name is None or element.attributes.get("id") == name) and all(entry in element.classes for entry in classes)
            and all(key in element.attributes and (not value or element.attributes[key] == value) for key, value in attributes))


def compiled(selector):
    """((specificity), [(combinator, simple)]) or None."""
    parts = re.sub(r"\s*>\s*", " > ", selector).split()
    chain, combinator, weight = [], " ", [0, 0, 0]
    for part in parts:
        if part == ">":
            combinator = ">"
            continue
        if part in ("+", "~"):
            return None
        simple = _simple(part)
        if simple is None:
            return None
        weight[0] += simple[1] is not None
        weight[1] += len(simple[2]) + len(simple[3]) + (part == ":root")
        weight[2] += simple[0] is not None
        chain.append((combinator, simple))
        combinator = " "
    return (tuple(weight), chain) if chain else None


def matches(chain, element):
    """Whether an element is what the selector means."""
    if not _fits(chain[-1][1], element):
        return False
    at, here, combinator = len(chain) - 2, element.parent, chain[-1][0]
    while at >= 0:
        if here is None:
            return False
        if _fits(chain[at][1], here):
            combinator, at = chain[at][0], at - 1
        elif combinator == ">":
            return False
        here = here.parent
    return True


def resolve(value, variables, depth=0):
    """The value with var() filled in, or None when a variable is unknown."""
    while "var(" in value and depth < 12:
        match = re.search(r"var\(\s*(--[\w-]+)\s*(?:,([^()]*(?:\([^()]*\)[^()]*)*))?\)", value)
        if not match:
            return None
        found = variables.get(match.group(1), match.group(2))
        if found is None:
            return None
        value, depth = value[:match.start()] + found.strip() + value[match.end():], depth + 1
    return value
