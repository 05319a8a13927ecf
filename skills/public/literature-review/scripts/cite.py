"""Formats records as references in the common styles.

Invariant: a part that a record lacks is left out together with its punctuation; nothing is invented.
"""
import re

STYLES = ("apa", "ieee", "vancouver", "chicago", "markdown")


def split_name(name):
    """(family, given) of 'Family, Given'; organisations have no given name."""
    family, _, given = name.partition(",")
    return family.strip(), given.strip()


def initials(given, dot=".", gap=" "):
    """'Jean-Paul M' becomes 'J.-P. M.'."""
    parts = []
    for part in re.split(r"[\s.]+", given):
        if part:
            letters = [piece[0].upper() for piece in part.split("-") if piece] if not (part.isupper() and len(part) <= 3 and "-" not in part) else list(part)
            parts.append(f"{dot}-".join(letters) + dot if "-" in part else gap.join(letter + dot for letter in letters))
    return gap.join(parts)


def _apa_name(name):
    family, given = split_name(name)
    return f"{family}, {initials(given)}" if given else family


def _joined(names, last, most, most_word):
    if len(names) > most:
        return f"{', '.join(names[:most_word])}, et al."
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])}{',' if len(names) > 2 or last.startswith(' &') else ''}{last}{names[-1]}" if names else ""


def _end(text):
    return text if text.endswith((".", "?", "!")) else text + "."


def cite(record, style, number=1):
    """One reference."""
    return {"apa": _apa, "ieee": _ieee, "vancouver": _vancouver, "chicago": _chicago, "markdown": _markdown}[style](record, number)


def _link(record):
    return f"https://doi.org/{record['doi']}" if record["doi"] else record["url"]


def _apa(record, _):
    names = [_apa_name(name) for name in record["authors"]]
    if len(names) > 20:
        who = f"{', '.join(names[:19])}, … {names[-1]}"
    else:
        who = names[0] if len(names) == 1 else f"{', '.join(names[:-1])}, & {names[-1]}" if names else ""
    volume = f"*{record['volume']}*" + (f"({record['number']})" if record["number"] else "") if record["volume"] else ""
    place = ", ".join(part for part in (f"*{record['journal']}*" if record["journal"] else record["publisher"], volume, record["pages"].replace("--", "–")) if part)
    return " ".join(part for part in (_end(who) if who else "", f"({record['year'] or 'n.d.'}).", _end(record["title"]), _end(place) if place else "", _link(record)) if part)


def _ieee(record, number):
    names = [f"{initials(split_name(name)[1])} {split_name(name)[0]}".strip() for name in record["authors"]]
    who = f"{names[0]} et al." if len(names) > 6 else _joined(names, " and ", 6, 1)
    parts = [f"vol. {record['volume']}" if record["volume"] else "", f"no. {record['number']}" if record["number"] else "", f"pp. {record['pages'].replace('--', '–')}" if record["pages"] else "", record["year"], f"doi: {record['doi']}" if record["doi"] else record["url"]]
    rest = ", ".join(part for part in [f"*{record['journal']}*" if record["journal"] else record["publisher"]] + parts if part)
    return f"[{number}] " + (f"{who}, " if who else "") + f"“{record['title']},” " + _end(rest)


def _vancouver(record, number):
    names = [f"{split_name(name)[0]} {initials(split_name(name)[1], '', '')}".replace("-", "").strip() for name in record["authors"]]
    who = ", ".join(names[:6]) + (", et al" if len(names) > 6 else "")
    where = (";" + record["volume"] if record["volume"] else "") + (f"({record['number']})" if record["number"] else "") + (f":{record['pages'].replace('--', '-').replace('–', '-')}" if record["pages"] else "")
    parts = [_end(who) if who else "", _end(record["title"]), _end(record["journal"] or record["publisher"]) if record["journal"] or record["publisher"] else "", f"{record['year']}{where}." if record["year"] or where else "", f"doi:{record['doi']}" if record["doi"] else record["url"]]
    return f"{number}. " + " ".join(part for part in parts if part)


def _chicago(record, _):
    names = list(record["authors"])
    rest = [" ".join(reversed(split_name(name))).strip() for name in names[1:]]
    if len(names) > 10:
        who = ", ".join([names[0]] + rest[:6]) + ", et al"
    else:
        others = f", {', '.join(rest[:-1])}, and {rest[-1]}" if len(rest) > 1 else f", and {rest[0]}" if rest else ""
        who = names[0] + others if names else ""
    volume = f" {record['volume']}" if record["volume"] else ""
    volume += f" ({record['number']})" if record["number"] else ""
    volume += f": {record['pages'].replace('--', '–')}" if record["pages"] else ""
    where = f"*{record['journal']}*{volume}" if record["journal"] else record["publisher"]
    return " ".join(part for part in (_end(who) if who else "", f"{record['year'] or 'n.d.'}.", f"“{_end(record['title'])}”", _end(where) if where else "", _end(_link(record)) if _link(record) else "") if part)


def _markdown(record, _):
    family = split_name(record["authors"][0])[0] if record["authors"] else "Anon."
    who = f"{family} et al." if len(record["authors"]) > 2 else " & ".join(split_name(name)[0] for name in record["authors"]) or family
    title = f"[{record['title']}]({_link(record)})" if _link(record) else record["title"]
    return f"- **{who} {record['year'] or 'n.d.'}**. {title}" + (f". *{record['journal']}*" if record["journal"] else "") + "."
