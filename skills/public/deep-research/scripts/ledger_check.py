"""The rules a research ledger and the report made from it must keep.

Invariant: a rule never repairs anything; each finding is (level, where, words).
"""
import difflib
import os
import re
from urllib.parse import urlparse

KINDS = ("primary", "secondary", "opinion", "vendor", "unknown")
SURE = ("high", "medium", "low")
STATES = ("supported", "disputed", "open")
_SAME_SIGNS = {"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "‚": "'", "–": "-", "—": "-", "−": "-", "\u00a0": " ", "\u202f": " ", "\u00ad": "", "…": "..."}


def plain(text):
    """The text with typography and line breaks evened out: these may differ in a faithful quote, words may not."""
    for sign, same in _SAME_SIGNS.items():
        text = text.replace(sign, same)
    return re.sub(r"\s+", " ", re.sub(r"(?<=\w)-\n\s*(?=[a-zäöüß])", "", text)).strip()


def owner(source):
    """Who answers for a source: its publisher, else the site's name without www."""
    if source.get("publisher"):
        return source["publisher"].strip().casefold()
    host = (urlparse(source.get("url", "")).hostname or "").lower()
    return re.sub(r"^www\.", "", host) or source["id"]


def check_ledger(ledger, folder):
    """Findings about sources, claims and quotes."""
    found = []
    add = lambda level, where, words: found.append((level, where, words))  # noqa: E731
    sources, claims = ledger["sources"], ledger["claims"]
    for name, entries in (("source", sources), ("claim", claims)):
        ids = [entry["id"] for entry in entries]
        for repeated in sorted({entry for entry in ids if ids.count(entry) > 1}):
            add("error", repeated, f"two {name}s carry this id")
    if not str(ledger.get("question", "")).strip():
        add("warning", "ledger", "the question is not written down")
    if not claims:
        add("error", "ledger", "there is no claim yet")
    by_id, texts = {source["id"]: source for source in sources}, {}
    used = {name for claim in claims for name in claim.get("sources", [])}
    for source in sources:
        texts[source["id"]] = _source(source, folder, used, add)
    for claim in claims:
        _claim(claim, by_id, texts, add)
    return found


def _source(source, folder, used, add):
    where = source["id"]
    if not source.get("title"):
        add("error", where, "has no title")
    if not source.get("url") and not source.get("file"):
        add("error", where, "has neither an address nor a saved file: nobody can look it up")
    if source.get("url") and not re.match(r"^https?://[^\s/]+\.[^\s/]+", source["url"]):
        add("error", where, f"{source['url']} is not a complete address")
    if source.get("kind", "unknown") not in KINDS:
        add("error", where, f"kind {source['kind']!r} is none of {', '.join(KINDS)}")
    if not source.get("date"):
        add("warning", where, "has no date of publication; write 'undated' if there is none")
    if where not in used:
        add("error", where, f"is not used by any claim ({source.get('title', '')}); use it or take it out")
    if not source.get("file"):
        return None
    path = os.path.join(folder, source["file"])
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return plain(handle.read())
    except OSError as error:
        add("error", where, f"its saved text {source['file']} cannot be read ({error.strerror})")
        return None


def _claim(claim, by_id, texts, add):
    where, names = claim["id"], claim.get("sources", [])
    state, sure = claim.get("status", "supported"), claim.get("confidence", "medium")
    if not str(claim.get("text", "")).strip():
        add("error", where, "has no text")
    if state not in STATES:
        add("error", where, f"status {state!r} is none of {', '.join(STATES)}")
    if sure not in SURE:
        add("error", where, f"confidence {sure!r} is none of {', '.join(SURE)}")
    if not names and state != "open":
        add("error", where, f"has no source: {claim.get('text', '')[:60]}")
    for name in names:
        if name not in by_id:
            add("error", where, f"names source {name}, which is not listed")
    known = [by_id[name] for name in names if name in by_id]
    owners = {owner(source) for source in known}
    if sure == "high" and state == "supported":
        if len(owners) < 2 and not any(source.get("kind") == "primary" for source in known):
            add("error", where, "is marked high, but rests on one publisher and no primary source; find a second one or lower it")
        if known and all(source.get("kind") in ("opinion", "vendor") for source in known):
            add("error", where, "is marked high, but all its sources are opinions or vendors")
    if state == "disputed" and len(owners) < 2:
        add("warning", where, "is disputed, but only one side has a source")
    quotes = claim.get("quotes", [])
    if not isinstance(quotes, list) or not all(isinstance(quote, dict) for quote in quotes):
        add("error", where, "quotes must be a list of {source, text}")
        return
    if state == "supported" and known and not quotes:
        add("warning", where, "has no verbatim quote; add the words that carry it")
    for quote in quotes:
        _quote(where, quote, names, texts, add)


def _quote(where, quote, names, texts, add):
    name, words = quote.get("source"), plain(str(quote.get("text", "")))
    if name not in names:
        add("error", where, f"quotes {name}, which is not among its sources")
    if len(words) < 8:
        add("warning", where, f"the quote {words!r} is too short to prove anything")
    text = texts.get(name)
    if text is None:
        add("warning", where, f"the quote from {name} cannot be compared: no saved text")
        return
    pieces = [piece.strip() for piece in re.split(r"\[\s*\.\.\.\s*\]", words) if piece.strip()]
    at = 0
    for piece in pieces:
        spot = text.find(piece, at)
        if spot < 0:
            near = _nearest(text, piece)
            add("error", where, f"{name} does not say {piece!r}" + (f"; nearest: {near!r}" if near else "") + (" (its case differs)" if piece.casefold() in text.casefold() else ""))
            return
        at = spot + len(piece)


def _nearest(text, piece):
    """The passage most like the piece, so that a slip is seen at once."""
    words, wanted = text.split(" "), piece.split(" ")
    rare = max(wanted, key=len)
    best, share = "", 0.45
    spots = [at for at, word in enumerate(words) if rare.casefold() in word.casefold()][:40] or range(0, min(len(words), 4000), max(len(wanted) // 2, 1))
    for at in spots:
        begin = max(0, at - wanted.index(rare))
        passage = " ".join(words[begin:begin + len(wanted)])
        ratio = difflib.SequenceMatcher(None, passage.casefold(), piece.casefold()).ratio()
        if ratio > share:
            best, share = passage, ratio
    return best[:160]


def check_report(ledger, report):
    """Findings about a Markdown report that cites the ledger's sources as [S1]."""
    found, by_id = [], {source["id"]: source for source in ledger["sources"]}
    body = re.split(r"(?im)^#+\s*(sources|references|quellen|bibliography)\b", report)[0]
    body = re.sub(r"```.*?```", lambda match: "\n" * match.group().count("\n"), body, flags=re.S)
    cited = {}
    for at, line in enumerate(body.split("\n"), start=1):
        for group in re.findall(r"\[((?:S\d+)(?:\s*[,;]\s*S\d+)*)\](?!\()", line):
            for name in re.split(r"\s*[,;]\s*", group):
                cited.setdefault(name, at)
    for name, at in cited.items():
        if name not in by_id:
            found.append(("error", f"report:{at}", f"cites [{name}], which is not in the ledger"))
    for claim in ledger["claims"]:
        if claim.get("status", "supported") != "open" and claim.get("sources") and not set(claim["sources"]) & set(cited):
            found.append(("warning", claim["id"], f"none of its sources is cited in the report: {claim.get('text', '')[:60]}"))
    at = 1
    for paragraph in re.split(r"\n\s*\n", body):
        text = paragraph.strip()
        figure = re.search(r"\d+([.,]\d+)?\s?(%|percent|million|billion|bn\b)|[$€£]\s?\d|\b(19|20)\d{2}\b", text)
        if figure and not text.startswith(("#", "|", ">", "---")) and not re.search(r"\[S\d+", text):
            found.append(("warning", f"report:{at}", f"states {figure.group(0)!r} without a source: {' '.join(text.split())[:60]}…"))
        at += paragraph.count("\n") + 2
    for quote in re.findall(r"“([^”]{25,})”|\"([^\"\n]{25,})\"", body):
        words = plain(quote[0] or quote[1])
        if not any(words in plain(str(entry.get("text", ""))) for claim in ledger["claims"] for entry in claim.get("quotes", []) if isinstance(entry, dict)):
            found.append(("warning", "report", f"a quotation that no claim of the ledger holds: {words[:60]}…"))
    return found
