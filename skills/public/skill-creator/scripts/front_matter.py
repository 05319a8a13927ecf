"""Reads the part of YAML that the front matter of a skill uses: scalars, quoted text, blocks, lists, one level of maps.

Invariant: what is not understood is an error with its line; nothing is guessed.
"""
import re


class FrontMatterError(Exception):
    """A mistake in the front matter; line counts from the top of the file."""

    def __init__(self, line, words):
        super().__init__(words)
        self.line, self.words = line, words


def split(text):
    """(front matter lines, line number of the body, body) of a SKILL.md."""
    lines = text.lstrip("\ufeff").replace("\r\n", "\n").split("\n")
    if not lines or lines[0].rstrip() != "---":
        raise FrontMatterError(1, "the file does not begin with '---'")
    for at in range(1, len(lines)):
        if lines[at].rstrip() == "---":
            return lines[1:at], at + 2, "\n".join(lines[at + 1:])
    raise FrontMatterError(1, "the front matter is not closed with '---'")


def parse(lines):
    """({key: value}, {key: line}) of front matter lines; the first of them is line 2 of the file."""
    values, places, at = {}, {}, 0
    while at < len(lines):
        line, number = lines[at], at + 2
        if not line.strip() or line.lstrip().startswith("#"):
            at += 1
            continue
        match = re.match(r"^([A-Za-z][\w-]*)\s*:(?:\s+(.*))?$", line)
        if not match:
            raise FrontMatterError(number, f"expected 'key: value', found {line.strip()[:40]!r}" + (" (indented by mistake?)" if line[:1] in " \t" else ""))
        key, rest = match.group(1), (match.group(2) or "").strip()
        if key in values:
            raise FrontMatterError(number, f"the key {key!r} is there twice")
        places[key] = number
        inner, at = [], at + 1
        while at < len(lines) and (not lines[at].strip() or lines[at][:1] in " \t" or (not rest and lines[at].startswith("- "))):
            inner.append((at + 2, lines[at]))
            at += 1
        values[key] = _value(rest, inner, number)
    return values, places


def _value(rest, inner, number):
    filled = [(line, text) for line, text in inner if text.strip()]
    block = re.match(r"^([|>])[+-]?$", rest)
    if block:
        indent = min((len(text) - len(text.lstrip()) for _, text in filled), default=0)
        texts = [text[indent:].rstrip() for _, text in inner]
        joined = "\n".join(texts).strip("\n")
        return joined if block.group(1) == "|" else re.sub(r"(?<!\n)\n(?!\n)", " ", joined)
    if rest.startswith("["):
        if not rest.endswith("]"):
            raise FrontMatterError(number, "this list is not closed with ']'")
        return [_scalar(part, number) for part in re.findall(r'"[^"]*"|\'[^\']*\'|[^,]+', rest[1:-1]) if part.strip()]
    if rest:
        return _scalar(" ".join([rest] + [text.strip() for _, text in filled]), number)
    if not filled:
        return ""
    if filled[0][1].strip().startswith("- "):
        items = []
        for line, text in filled:
            if not text.strip().startswith("- "):
                raise FrontMatterError(line, "every entry of this list begins with '- '")
            items.append(_scalar(text.strip()[2:].strip(), line))
        return items
    inside = {}
    for line, text in filled:
        match = re.match(r"^\s+([\w.-]+)\s*:(?:\s+(.*))?$", text)
        if not match:
            raise FrontMatterError(line, f"expected 'key: value', found {text.strip()[:40]!r}")
        inside[match.group(1)] = _scalar((match.group(2) or "").strip(), line)
    return inside


def _scalar(text, number):
    text = text.strip()
    if text[:1] in "\"'":
        if len(text) < 2 or text[-1] != text[0]:
            raise FrontMatterError(number, "the quotation mark is not closed")
        inner = text[1:-1]
        return inner.replace("''", "'") if text[0] == "'" else inner.replace('\\"', '"').replace("\\n", "\n")
    text = re.sub(r"\s+#.*$", "", text)
    if re.search(r":(\s|$)", text):
        raise FrontMatterError(number, "a colon followed by a space ends a plain value in YAML; put the value in quotation marks")
    if text[:1] in "@`%&*!{}":
        raise FrontMatterError(number, f"a plain value cannot begin with {text[:1]!r}; put it in quotation marks")
    return text
