"""Finds records that describe the same work, and joins them.

Invariant: nothing is lost: a joined record keeps every field either one had, and every join is listed with its reason.
"""
import difflib
import re
import unicodedata

SURE, MAYBE = 0.93, 0.85


def folded(text):
    """Letters and digits only, without accents and case."""
    text = unicodedata.normalize("NFKD", text.casefold().replace("&", " and "))
    return " ".join(re.findall(r"[a-z0-9]+", "".join(char for char in text if not unicodedata.combining(char)))) or text.strip()


def _family(record):
    return folded(record["authors"][0].split(",")[0]) if record["authors"] else ""


def _years_fit(a, b):
    return not a["year"] or not b["year"] or abs(int(a["year"]) - int(b["year"])) <= 1


def dedupe(records):
    """(kept records, [(kept id, dropped id, reason)], [(id, id, reason)] that a person must decide)."""
    kept, joined, unsure = [], [], []
    by_doi, by_title, by_author = {}, {}, {}
    for record in records:
        title, family, twin, reason = folded(record["title"]), _family(record), None, ""
        if record["doi"] and record["doi"] in by_doi:
            twin, reason = by_doi[record["doi"]], "same DOI"
        if twin is None and title:
            for other in by_title.get(title, []):
                if _years_fit(record, other) and (not family or not _family(other) or family == _family(other)):
                    if record["doi"] and other["doi"] and record["doi"] != other["doi"]:
                        unsure.append((other["id"], record["id"], "same title, different DOI (preprint and article?)"))
                    elif len(title) >= 15 or (family and record["year"] == other["year"]):
                        twin, reason = other, "same title, year and first author"
                        break
        if twin is None and title and family:
            for other in by_author.get(family, []):
                if not _years_fit(record, other) or (record["doi"] and other["doi"]) or folded(other["title"]) == title:
                    continue
                share = difflib.SequenceMatcher(None, title, folded(other["title"])).ratio()
                if share >= SURE:
                    twin, reason = other, f"titles agree to {share:.0%}"
                    break
                if share >= MAYBE:
                    unsure.append((other["id"], record["id"], f"titles agree to {share:.0%}"))
        if twin is not None:
            joined.append((twin["id"], record["id"], reason, record["source"]))
            _fill(twin, record)
            if twin["doi"]:
                by_doi.setdefault(twin["doi"], twin)
            continue
        kept.append(record)
        if record["doi"]:
            by_doi[record["doi"]] = record
        by_title.setdefault(title, []).append(record)
        by_author.setdefault(family, []).append(record)
    return kept, joined, unsure


def _fill(target, other):
    for name, value in other.items():
        if name in ("id", "source"):
            continue
        if not target.get(name) or (name == "abstract" and len(value) > len(target[name])) or (name == "authors" and len(value) > len(target[name])):
            target[name] = value
    if other["source"] not in target["source"].split("; "):
        target["source"] += f"; {other['source']}"


def name_records(records):
    """Gives every record a readable unique id: family name, year, letter."""
    taken = {}
    for record in records:
        base = (_family(record).replace(" ", "") or "anon") + (record["year"] or "nd")
        taken[base] = taken.get(base, 0) + 1
        at = taken[base]
        record["id"] = base if at == 1 else base + (chr(ord("a") + at - 1) if at <= 26 else f"-{at}")
