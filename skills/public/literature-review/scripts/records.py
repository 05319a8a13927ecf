"""Reads bibliographic records from BibTeX, RIS, PubMed (NBIB) and CSV files into one shape, and writes BibTeX.

Invariant: a record that cannot be read is reported with its place; the others are kept.
"""
import csv
import io
import os
import re
import unicodedata

FIELDS = ("id", "type", "title", "authors", "year", "journal", "volume", "number", "pages", "publisher", "doi", "url", "abstract", "source")
_ACCENTS = {"'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307", "u": "\u0306", "v": "\u030c", "H": "\u030b", "c": "\u0327", "k": "\u0328", "r": "\u030a"}
_SPECIAL = {"\\ss": "ß", "\\o": "ø", "\\O": "Ø", "\\l": "ł", "\\L": "Ł", "\\ae": "æ", "\\AE": "Æ", "\\aa": "å", "\\AA": "Å", "\\i": "i", "\\&": "&", "\\%": "%", "\\_": "_", "\\$": "$", "\\#": "#", "~": " ", "---": "—", "--": "–"}
_RIS_TYPES = {"JOUR": "article", "JFULL": "article", "CONF": "inproceedings", "CPAPER": "inproceedings", "BOOK": "book", "CHAP": "incollection", "THES": "phdthesis", "RPRT": "techreport"}
_COLUMNS = {"title": ("title", "article title", "document title"), "authors": ("authors", "author", "author full names", "author names"), "year": ("year", "publication year", "date", "publication date"), "journal": ("journal", "source title", "publication title", "venue", "journal/book"), "doi": ("doi",), "url": ("url", "link"), "abstract": ("abstract",), "volume": ("volume",), "number": ("number", "issue"), "pages": ("pages",), "id": ("id", "key"), "publisher": ("publisher",), "type": ("type", "document type")}


class RecordError(Exception):
    """A file that cannot be used at all."""


def read_records(path):
    """(records, complaints) of a file."""
    try:
        with open(path, "rb") as handle:
            raw = handle.read()
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}") from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("cp1252", errors="replace")
    if not text.strip() or "\x00" in text:
        raise RecordError(f"{path} is {'empty' if not text.strip() else 'not text'}")
    text = text.replace("\r\n", "\n")
    if re.search(r"(?m)^\s*@\w+\s*[{(]", text):
        records, complaints = _bibtex(text)
    elif re.search(r"(?m)^TY  ?- ", text):
        records, complaints = _tagged(text, "ris")
    elif re.search(r"(?m)^PMID ?- ", text):
        records, complaints = _tagged(text, "nbib")
    else:
        records, complaints = _csv(text, path)
    if not records:
        raise RecordError(f"{path} holds no record (BibTeX, RIS, NBIB or CSV with a title column)")
    for record in records:
        record["source"] = os.path.basename(path)
        _tidy(record)
    return records, [f"{path}: {words}" for words in complaints]


def _tidy(record):
    for name in FIELDS:
        if name != "authors":
            record[name] = re.sub(r"\s+", " ", str(record.get(name) or "")).strip()
    record["authors"] = [re.sub(r"\s+", " ", author).strip(" ,") for author in record.get("authors") or [] if author.strip(" ,")]
    year = re.search(r"\b(1[5-9]|20|21)\d{2}\b", record["year"])
    record["year"] = year.group() if year else ""
    doi = re.search(r"10\.\d{4,9}/[^\s\"<>]+", record["doi"] or record["url"])
    record["doi"] = doi.group().rstrip(".,;)").lower() if doi else ""
    record["title"] = record["title"].rstrip(".") if not record["title"].endswith("...") else record["title"]


def latex_to_text(value):
    """BibTeX's writing of accents and signs as plain text."""
    for sign, plain in sorted(_SPECIAL.items(), key=lambda pair: -len(pair[0])):
        if sign.startswith("\\") and sign[1:].isalpha():
            value = re.sub(re.escape(sign) + r"(?![A-Za-z])\s*(\{\})?", lambda _: plain, value)
        else:
            value = value.replace(sign, plain)
    value = re.sub(r"\\(['`^\"~=.]|[uvHckr](?=[\s{]))\s*\{?\s*([A-Za-z])\s*\}?", lambda match: match.group(2) + _ACCENTS[match.group(1)], value)
    value = re.sub(r"\\(emph|textit|textbf|textsc|mathrm)\s*", "", value)
    return unicodedata.normalize("NFC", re.sub(r"[{}]", "", value)).strip()


def _bibtex(text):
    records, complaints, strings, at = [], [], {}, 0
    for match in re.finditer(r"(?m)^\s*@(\w+)\s*([{(])", text):
        if match.start() < at:
            continue
        kind, line = match.group(1).lower(), text.count("\n", 0, match.end()) + 1
        end = _closing(text, match.end() - 1)
        if end is None:
            complaints.append(f"line {line}: the entry is not closed")
            following = re.search(r"(?m)^\s*@\w+\s*[{(]", text[match.end():])
            at = match.end() + (following.start() if following else len(text))
            continue
        body, at = text[match.end():end], end + 1
        if kind in ("comment", "preamble"):
            continue
        if kind == "string":
            name, _, value = body.partition("=")
            strings[name.strip().lower()] = value.strip().strip('{}"')
            continue
        key, comma, rest = body.partition(",")
        if not comma:
            complaints.append(f"line {line}: the entry has no fields")
            continue
        fields = _fields(rest, strings)
        if not fields.get("title"):
            complaints.append(f"line {line}: {key.strip()} has no title")
        authors = [_name(latex_to_text(author)) for author in re.split(r"\s+and\s+", fields.get("author", fields.get("editor", ""))) if author.strip()]
        clean = {name: latex_to_text(value) for name, value in fields.items() if name not in ("url", "doi")}
        records.append({"id": key.strip(), "type": kind, "title": clean.get("title", ""), "authors": authors, "year": clean.get("year", clean.get("date", "")), "journal": clean.get("journal", clean.get("booktitle", clean.get("journaltitle", ""))), "volume": clean.get("volume", ""), "number": clean.get("number", ""), "pages": clean.get("pages", ""), "publisher": clean.get("publisher", clean.get("school", clean.get("institution", ""))), "doi": fields.get("doi", "").replace("\\_", "_"), "url": fields.get("url", ""), "abstract": clean.get("abstract", "")})
    return records, complaints


def _closing(text, at):
    """Where the bracket at this place is closed, or None."""
    close, depth = ("}", 0) if text[at] == "{" else (")", 0)
    while at < len(text):
        if text[at] == "\\":
            at += 2
            continue
        depth += (text[at] in "{" + ("(" if close == ")" else "")) - (text[at] in "}" + (")" if close == ")" else ""))
        if depth == 0:
            return at
        at += 1
    return None


def _fields(text, strings):
    fields, at = {}, 0
    while True:
        match = re.compile(r"\s*,?\s*([\w-]+)\s*=\s*").match(text, at)
        if not match:
            return fields
        at, value = match.end(), ""
        while at < len(text):
            if text[at] == "{":
                end = _closing(text, at)
                end = len(text) if end is None else end
                value, at = value + text[at + 1:end], end + 1
            elif text[at] == '"':
                end = at + 1
                depth = 0
                while end < len(text) and (text[end] != '"' or depth or text[end - 1] == "\\"):
                    depth += (text[end] == "{") - (text[end] == "}")
                    end += 1
                value, at = value + text[at + 1:end], end + 1
            else:
                word = re.compile(r"[^\s,#}]*").match(text, at)
                value, at = value + strings.get(word.group().lower(), word.group()), max(word.end(), at + (not word.group()))
            join = re.compile(r"\s*#\s*").match(text, at)
            if not join:
                break
            at = join.end()
        fields.setdefault(match.group(1).lower(), value.strip())


def _name(name):
    """'Family, Given' whatever order it was written in."""
    if "," in name or " " not in name.strip():
        return name.strip()
    parts = name.split()
    cut = len(parts) - 1
    while cut > 1 and parts[cut - 1].lower() in ("van", "von", "de", "der", "den", "del", "della", "di", "da", "la", "le", "ten", "ter"):
        cut -= 1
    return f"{' '.join(parts[cut:])}, {' '.join(parts[:cut])}"


def _tagged(text, form):
    records, complaints, record, last = [], [], None, None
    for number, line in enumerate(text.split("\n"), start=1):
        match = re.match(r"^([A-Z][A-Z0-9]{1,3}) {0,2}- ?(.*)$", line)
        if match:
            tag, value = match.group(1), match.group(2).strip()
            if tag in ("TY", "PMID"):
                if record is not None:
                    records.append(_from_tags(record, form))
                record = {"_line": number}
            if record is None:
                complaints.append(f"line {number}: {tag} outside of a record")
                continue
            if tag == "ER":
                records.append(_from_tags(record, form))
                record = None
                continue
            record.setdefault(tag, []).append(value)
            last = tag
        elif line.strip() and record is not None and last:
            record[last][-1] += " " + line.strip()
    if record is not None:
        if form == "ris":
            complaints.append(f"line {record['_line']}: the record has no end (ER)")
        records.append(_from_tags(record, form))
    return records, complaints


def _from_tags(tags, form):
    first = lambda *names: next((tags[name][0] for name in names if tags.get(name)), "")  # noqa: E731
    if form == "nbib":
        doi = next((value.split(" ")[0] for value in tags.get("LID", []) + tags.get("AID", []) if "[doi]" in value), "")
        return {"id": "pmid" + first("PMID"), "type": "article", "title": first("TI"), "authors": tags.get("FAU") or tags.get("AU", []), "year": first("DP"), "journal": first("JT", "TA"), "volume": first("VI"), "number": first("IP"), "pages": first("PG"), "doi": doi, "abstract": first("AB")}
    pages = first("SP") + (f"–{first('EP')}" if first("EP") and first("EP") != first("SP") else "")
    return {"id": first("ID"), "type": _RIS_TYPES.get(first("TY"), "misc"), "title": first("TI", "T1", "CT"), "authors": tags.get("AU", []) or tags.get("A1", []), "year": first("PY", "Y1", "DA"), "journal": first("JO", "JF", "T2", "JA", "BT"), "volume": first("VL"), "number": first("IS"), "pages": pages, "publisher": first("PB"), "doi": first("DO"), "url": first("UR"), "abstract": first("AB", "N2")}


def _csv(text, path):
    head = text.split("\n", 1)[0]
    delimiter = "\t" if path.lower().endswith(".tsv") else max(",;\t", key=head.count)
    rows = csv.DictReader(io.StringIO(text), delimiter=delimiter)
    names = {name.strip().lower(): name for name in rows.fieldnames or []}
    found = {field: next((names[option] for option in options if option in names), None) for field, options in _COLUMNS.items()}
    if not found["title"]:
        raise RecordError(f"{path} has no title column; its columns are: {', '.join(rows.fieldnames or [])}")
    records, complaints = [], []
    for number, row in enumerate(rows, start=2):
        record = {field: row.get(column) or "" for field, column in found.items() if column}
        if not record["title"].strip():
            complaints.append(f"row {number}: no title")
            continue
        authors = record.get("authors", "")
        parts = re.split(r"\s*;\s*|\s+and\s+|\s*\|\s*", authors) if re.search(r";| and |\|", authors) else re.split(r"\s*,\s*(?=[^,]*\s)", authors)
        record["authors"] = [_name(part) for part in parts]
        record["type"] = record.get("type", "").lower() or "article"
        records.append(record)
    return records, complaints


def write_bibtex(records):
    """The records as BibTeX."""
    out = []
    for record in records:
        kind = record["type"] if re.match(r"^[a-z]+$", record["type"] or "") else "article"
        place = "booktitle" if kind in ("inproceedings", "incollection", "conference") else "journal"
        fields = [("title", f"{{{record['title']}}}"), ("author", " and ".join(record["authors"])), ("year", record["year"]), (place, record["journal"]), ("volume", record["volume"]), ("number", record["number"]), ("pages", record["pages"].replace("–", "--")), ("publisher", record["publisher"]), ("doi", record["doi"]), ("url", record["url"])]
        body = ",\n".join(f"  {name} = {{{_escape(value) if name not in ('doi', 'url') else value}}}" for name, value in fields if value and value != "{}")
        out.append(f"@{kind}{{{record['id']},\n{body}\n}}\n")
    return "\n".join(out)


def _escape(value):
    return re.sub(r"(?<!\\)([&%#$])", r"\\\1", value)
