"""References hold: links of the documents to files and headings, and the policy's sections that comments cite.

Usage: references.py SOURCES
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
ROOMS = ("precision", "optim", "engine", "cpu", "tools", "tests", "examples")


def prose(document):
    return re.sub(r"^```.*?^```$", "", document.read_text(encoding="utf-8"), flags=re.M | re.S)


def anchors(document):
    """The names that a heading gets: lower case, letters, digits and hyphens."""
    headings = re.findall(r"^#+ (.*)$", prose(document), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(document):
    links = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose(document)))
    for path, _, anchor in (link.partition("#") for link in links if "://" not in link):
        target = (document.parent / path).resolve() if path else document
        if not target.exists():
            yield f"{document.relative_to(ROOT)}: no file {path}"
        elif anchor and anchor not in anchors(target):
            yield f"{document.relative_to(ROOT)}: {target.name} has no heading #{anchor}"


def wrong_sections(source, sections):
    text = re.sub(r"\s+(\*\s+)?", " ", source.read_text(encoding="utf-8"))
    for cited in re.findall(r"[Pp]olicy(?:'s)?,? sections? (\d+(?: and \d+)*)", text):
        for number in re.findall(r"\d+", cited):
            if number not in sections:
                yield f"{source.relative_to(ROOT)}: the policy has no section {number}"


def main():
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("tests/*/*.md")]
    sources = [source for room in ROOMS for source in (ROOT / room).rglob("*.[ch]")]
    sections = set(re.findall(r"^## (\d+)\. ", (ROOT / "docs/policy.md").read_text(encoding="utf-8"), flags=re.M))
    links = sum(document.read_text(encoding="utf-8").count("](") for document in documents)
    assert links > 30 and len(sources) > 50, "the tree could not be read"
    faults = [fault for document in documents for fault in broken_links(document)]
    faults += [fault for source in sources for fault in wrong_sections(source, sections)]
    print("\n".join(faults))
    return 1 if faults else 0


sys.exit(main())
