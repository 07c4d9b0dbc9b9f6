"""A document of titled sections with texts and tables, shown as Markdown or on a terminal."""

import re
from collections.abc import Iterable

from pydantic import field_validator

from moorage.common.values import Value

NO_BREAK = "\u00a0"
_QUANTITY = re.compile(r"[\d.]+ [A-Za-z]{1,4}( \d+ [a-z]{1,3})?")
"""A number with its unit, such as `0.02 s` or `3 min 05 s`, which a narrow column must not wrap."""


class Section(Value):
    """One part of a document: a heading, prose, a chart, a table, and preformatted lines.

    A table whose columns have empty names is a list of facts. `bars` are names and numbers of the
    chart that the table also has: a terminal shows only the table.
    """

    title: str = ""
    text: str = ""
    code: str = ""
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    bars: tuple[tuple[str, float], ...] = ()
    unit: str = ""


def facts(rows: Iterable[tuple[str, str]]) -> Section:
    """A section that lists names and values."""
    return Section(header=("", ""), rows=tuple(rows))


class Document(Value):
    """A titled list of sections; empty ones are dropped."""

    title: str
    sections: tuple[Section, ...]

    @field_validator("sections")
    @classmethod
    def _drop_empty(cls, sections: tuple[Section, ...]) -> tuple[Section, ...]:
        return tuple(part for part in sections if part.text or part.rows or part.code)

    def markdown(self) -> str:
        """The document as Markdown."""
        parts = [f"# {self.title}"]
        for section in self.sections:
            parts += [f"## {section.title}"] if section.title else []
            parts += [section.text.replace("\n", "  \n")] if section.text else []
            parts += [_chart(section)] if len(section.bars) > 1 else []
            parts += [_table(section)] if section.rows else []
            parts += [_block(section.code)] if section.code else []
        return "\n\n".join(parts)


def _chart(section: Section) -> str:
    """A Mermaid chart, which the Prefect UI draws."""
    names = ", ".join('"' + name.replace('"', "'") + '"' for name, _ in section.bars)
    values = ", ".join(f"{value:.3f}" for _, value in section.bars)
    axes = f'  x-axis [{names}]\n  y-axis "{section.unit}"\n  bar [{values}]'
    return f"```mermaid\nxychart-beta horizontal\n{axes}\n```"


def _table(section: Section) -> str:
    lines = (section.header, ("---",) * len(section.header), *section.rows)
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    if _QUANTITY.fullmatch(text):
        return text.replace(" ", NO_BREAK)
    return text.replace("<", "&lt;").replace("|", "\\|").replace("\n", "<br>")


def _block(code: str) -> str:
    """Preformatted lines in a fence of more backticks than the lines contain."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{code}\n{fence}"
