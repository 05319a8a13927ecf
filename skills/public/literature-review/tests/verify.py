"""Plays the person who screens ('decide') and checks library, diagram and references ('check').

Invariant: expected references are written out here in full.
"""
import csv
import json
import os
import re
import sys
import xml.etree.ElementTree as tree

step, out = sys.argv[1], sys.argv[2]
checks = 0


def expect(good, words):
    global checks
    checks += 1
    if not good:
        sys.exit(f"FAIL {words}")


def text(name):
    with open(os.path.join(out, name), encoding="utf-8") as handle:
        return handle.read()


def decide():
    rows = list(csv.DictReader(text("screening.csv").splitlines()))
    decisions = {"smith2020": ("include", "include", ""), "larsen2018": ("include", "include", ""), "kim2022": ("include", "exclude", "Wrong population"), "doe2019": ("include", "unavailable", "")}
    for row in rows:
        row["screen"], row["fulltext"], row["fulltext_reason"] = decisions.get(row["id"], ("exclude", "", ""))
        row["fulltext_reason"] = row["fulltext_reason"].lower()
    with open(os.path.join(out, "screening.csv"), "w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def check():
    library = json.loads(text("library.json"))
    records = {record["id"]: record for record in library["records"]}
    smith = records["smith2020"]
    expect(smith["title"] == "Learning to Rank Café Reviews" and smith["authors"][1] == "Müller, Jörg", f"accents: {smith['title']} {smith['authors']}")
    expect(smith["journal"] == "Journal of Machine Learning" and smith["doi"] == "10.1000/abc.123", "strings and DOI")
    expect(smith["abstract"].startswith("A long abstract") and smith["source"] == "a.bib; b.ris", "a join keeps the abstract of the other")
    expect(records["doe2019"]["title"] == "A study of DNA & proteins", "quotes and escaped signs")
    expect(records["eco1980"]["source"] == "a.bib; c.csv" and records["eco1980"]["publisher"] == "Bompiani", "joined by title, year and author")
    expect(records["larsen2018"]["title"] == "Effects of sleep on memory" and records["larsen2018"]["doi"] == "10.4000/sleep.9", "PubMed records")
    expect(records["kim2022"]["authors"] == ["Kim, Lee", "Park, Jo"] and records["kim2022"]["source"] == "b.ris; c.csv", "joined by DOI under another title, with the longer list of authors")
    numbers = json.loads(text("flow.json"))
    expect((numbers["screened"], numbers["excluded"], numbers["sought"], numbers["unavailable"], numbers["assessed"], numbers["included"]) == (6, 2, 4, 1, 3, 2), f"counts {numbers}")
    drawing = tree.fromstring(text("flow.svg"))
    words = " ".join(element.text for element in drawing.iter("{http://www.w3.org/2000/svg}text"))
    for part in ("identified (n = 10)", "removed (n = 4)", "screened (n = 6)", "assessed (n = 3)", "wrong population: 1", "included (n = 2)"):
        expect(part in words, f"the diagram says {part}")
    lines = lambda name: text(name).strip().split("\n")  # noqa: E731
    want = {
        "apa": "Smith, A. B., Müller, J., & van der Berg, C.-O. (2020). Learning to Rank Café Reviews. *Journal of Machine Learning*, *12*(3), 100–115. https://doi.org/10.1000/abc.123",
        "ieee": "A. B. Smith, J. Müller, and C.-O. van der Berg, “Learning to Rank Café Reviews,” *Journal of Machine Learning*, vol. 12, no. 3, pp. 100–115, 2020, doi: 10.1000/abc.123.",
        "vancouver": "Smith AB, Müller J, van der Berg CO. Learning to Rank Café Reviews. Journal of Machine Learning. 2020;12(3):100-115. doi:10.1000/abc.123",
        "chicago": "Smith, Anna B., Jörg Müller, and Carl-Otto van der Berg. 2020. “Learning to Rank Café Reviews.” *Journal of Machine Learning* 12 (3): 100–115. https://doi.org/10.1000/abc.123.",
        "markdown": "- **Smith et al. 2020**. [Learning to Rank Café Reviews](https://doi.org/10.1000/abc.123). *Journal of Machine Learning*.",
    }
    for style, line in want.items():
        found = [re.sub(r"^(\[\d+\]|\d+\.) ", "", entry) for entry in lines(f"cite-{style}.txt")]
        expect(line in found, f"{style}: expected {line!r}, got {[entry for entry in found if 'Caf' in entry]}")
    expect("Eco, U. (1980). The Name. Bompiani." in lines("cite-apa.txt"), "a book in APA")
    expect(lines("cite-apa.txt") == sorted(lines("cite-apa.txt"), key=str.casefold), "APA is sorted by author")
    expect(lines("cited.txt")[0].startswith("1. Larsen OP, Ng W.") and lines("cited.txt")[1].startswith("2. Smith AB"), "the order of citing")
    expect(len(lines("included.txt")) == 2, "only included records")
    again = {record["id"]: record for record in json.loads(text("again.json"))["records"]}
    for name in ("smith2020", "larsen2018"):
        for field in ("title", "authors", "year", "journal", "doi", "volume"):
            expect(again[name][field] == records[name][field], f"{name}: {field} survives BibTeX: {again[name][field]} {records[name][field]}")
    print(f"ok   {checks} facts of library, diagram and references")


decide() if step == "decide" else check()
