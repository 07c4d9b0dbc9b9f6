"""HTML without scripts, built from elements: external values only ever become text."""

from collections.abc import Iterable
from xml.etree import ElementTree

from moorage.common.printable import printable
from moorage.reports.document import Section

Element = ElementTree.Element
Content = Element | str

GENERATOR = "moorage report"
"""Marks a page as one of moorage's, in a `meta` element near its beginning."""

BEGINNING = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="{GENERATOR}">
"""


def element(tag: str, *content: Content, **attributes: str) -> Element:
    """An element; `class_` stands for the attribute `class`."""
    made = ElementTree.Element(tag, {name.rstrip("_"): attributes[name] for name in attributes})
    for part in content:
        if not isinstance(part, str):
            made.append(part)
        elif len(made):
            made[-1].tail = (made[-1].tail or "") + printable(part)
        else:
            made.text = (made.text or "") + printable(part)
    return made


def page(title: str, style: str, content: Iterable[Element]) -> str:
    """A complete page that loads nothing and runs nothing."""
    head = element("title", title), element("style", style)
    body = element("body", element("h1", title), *content)
    return f"{BEGINNING}{''.join(map(_text, head))}</head>\n{_text(body)}</html>\n"


def section_elements(section: Section) -> list[Element]:
    """A section of a document: its heading, text, table and code."""
    found = [element("h3", section.title)] if section.title else []
    found += [element("p", section.text)] if section.text else []
    found += [table(section.header, section.rows)] if section.rows else []
    return found + ([element("pre", section.code)] if section.code else [])


def table(header: Iterable[str], rows: Iterable[Iterable[Content]]) -> Element:
    """A table; columns may have empty names."""
    head = element("tr", *(element("th", name) for name in header))
    body = (element("tr", *(element("td", cell) for cell in row)) for row in rows)
    return element("table", element("thead", head), element("tbody", *body))


def _text(made: Element) -> str:
    return f"{ElementTree.tostring(made, encoding='unicode', method='html')}\n"
