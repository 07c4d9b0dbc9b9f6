"""Decodes untrusted YAML within limits of size, depth, entries and digits."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, StreamMark, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.nodes import ScalarNode

from moorage.common.printable import clipped
from moorage.common.units import KIB, human_bytes

CORE = "tag:yaml.org,2002:"
MERGE = f"{CORE}merge"
KINDS = ("bool", "float", "int", "map", "null", "seq", "str")
TAGS = {None, "!", *(f"{CORE}{kind}" for kind in KINDS)}
"""Accepted tags. Any other tag would construct an object."""

LARGEST_TEXT = 256 * KIB
"""Most bytes. A parser in Python reads half a megabyte per second."""

DEEPEST = 32
"""Most levels of nested lists and mappings."""

MOST_ENTRIES = 20_000
"""Most keys, values, lists and mappings in total; each alias counts its contents again."""

MOST_ALIASES = 500
"""Most anchors, and most aliases."""

LONGEST_NUMBER = 64
"""Most characters of a number."""

SPECIAL_START = ("cannot start any token", "scanning an alias", "scanning a directive")
"""Parts of the parser's messages about a text whose first character means something in YAML."""

NEEDS_QUOTES = "a text that begins with a special character, such as {, % or *, needs quotes"

SHOWN = 40
"""Most characters of a key in a path."""


class YamlError(ValueError):
    """A text is not YAML, or exceeds a limit.

    Attributes:
        path: Path of the field, such as `hosts[0].ram`; empty = the whole text.
        place: Line and column, such as `4:3`; empty = unknown.
    """

    def __init__(self, message: str, path: str = "", place: str = "") -> None:
        super().__init__(message)
        self.path = path
        self.place = place


def decode(content: bytes | str) -> Any:
    """Decode a text that may be hostile: one document of YAML 1.2, in UTF-8.

    Aliases and merge keys are followed. Dates stay texts.

    Raises:
        YamlError: The text is not such a document, or exceeds a limit.
    """
    return _built(content).value


def places(content: bytes | str) -> dict[str, str]:
    """Line and column (such as `4:3`) of each field of a text that `decode` accepts.

    The keys are paths, such as `hosts[0].ram`. Fields that an alias repeats have their first place.
    """
    return _built(content, with_places=True).places


def _built(content: bytes | str, *, with_places: bool = False) -> "_Builder":
    if len(content) > LARGEST_TEXT:
        raise YamlError(f"larger than {human_bytes(LARGEST_TEXT)}")
    try:
        text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
    except UnicodeDecodeError as error:
        raise YamlError(f"not UTF-8: {error.reason} at byte {error.start}") from None
    try:
        return _Builder(text, with_places=with_places)
    except MarkedYAMLError as error:
        place = _place(error.problem_mark) if error.problem_mark else ""
        what = ", ".join(filter(None, (error.context, error.problem)))
        if "'\\t'" in what:
            what = "a tab indents this line; YAML takes only spaces"
        elif any(sign in what for sign in SPECIAL_START):
            what = f"{what}; {NEEDS_QUOTES}"
        raise YamlError(f"not valid YAML: {_one_line(what)}", place=place) from None
    except (YAMLError, UnicodeError, IndexError, RecursionError) as error:
        raise YamlError(f"not valid YAML: {_one_line(error)}") from None


@dataclass(frozen=True, slots=True)
class _Part:
    """A value, its number of entries, and their depth."""

    value: Any
    entries: int = 1
    depth: int = 0


class _Builder:
    """Builds values from the parser's events, and checks the limits before it keeps any."""

    def __init__(self, text: str, *, with_places: bool) -> None:
        # The parser in C would accept other texts: it implements YAML 1.1.
        self._yaml = YAML(typ="safe", pure=True)
        self._events: Iterator[Any] = self._yaml.parse(text)
        self._anchors: dict[str, _Part | None] = {}
        self._entries = self._aliases = 0
        self._path: list[str] = []
        self._with_places = with_places
        self.places: dict[str, str] = {}
        self.value = self._document()

    def _document(self) -> Any:
        """The value of the only document; None where the text has none."""
        found: list[Any] = []
        for event in self._events:
            if isinstance(event, AliasEvent | ScalarEvent | SequenceStartEvent | MappingStartEvent):
                if found:
                    raise YamlError("not valid YAML: more than one document")
                found.append(self._part(event).value)
        return found[0] if found else None

    def _part(self, event: Any) -> _Part:
        if isinstance(event, AliasEvent):
            self._aliases += 1
            part = self._repeated(event.anchor)
            self._count(part.entries)
            self._require_depth(len(self._path) + part.depth)
            return part
        self._count(1)
        if event.tag not in TAGS:
            raise self._refused(f"not valid YAML: the tag {event.tag[:SHOWN]!r} is not accepted")
        if event.anchor:
            self._anchors[event.anchor] = None  # no value may contain itself
        if isinstance(event, ScalarEvent):
            part = _Part(self._scalar(event))
        else:
            self._require_depth(len(self._path) + 1)
            part = self._sequence() if isinstance(event, SequenceStartEvent) else self._mapping()
        if event.anchor:
            self._anchors[event.anchor] = part
        return part

    def _sequence(self) -> _Part:
        parts: list[_Part] = []
        while not isinstance(event := next(self._events), SequenceEndEvent):
            parts.append(self._inside(f"[{len(parts)}]", event, event))
        return _collection([part.value for part in parts], parts)

    def _mapping(self) -> _Part:
        value: dict[Any, Any] = {}
        merged: list[dict[Any, Any]] = []
        parts: list[_Part] = []
        while not isinstance(event := next(self._events), MappingEndEvent):
            merges = isinstance(event, ScalarEvent) and self._tag(event) == MERGE
            key = self._part(event)
            if isinstance(key.value, dict | list):
                message = f"not valid YAML: a list or a mapping is no key; {NEEDS_QUOTES}"
                raise self._refused(message)
            if key.value in value:
                message = f'not valid YAML: found duplicate key "{_shown(key.value)}"'
                raise YamlError(message, self._shown_path(), _place(event.start_mark))
            part = self._inside(f".{_shown(key.value)}", next(self._events), event)
            parts += [key, part]
            if merges:
                merged += self._mappings(part.value)
            else:
                value[key.value] = part.value
        for other in merged:  # own keys win, then the first merged mapping
            value |= {key: inner for key, inner in other.items() if key not in value}
        return _collection(value, parts)

    def _inside(self, step: str, event: Any, first: Any) -> _Part:
        """A part of a collection; its text begins with the event `first`."""
        self._path.append(step)
        if self._with_places:
            self.places[self._shown_path()] = _place(first.start_mark)
        part = self._part(event)
        self._path.pop()
        return part

    def _mappings(self, value: Any) -> list[dict[Any, Any]]:
        found = value if isinstance(value, list) else [value]
        if not all(isinstance(one, dict) for one in found):
            raise self._refused("not valid YAML: `<<` merges mappings alone")
        return found

    def _repeated(self, anchor: str) -> _Part:
        part = self._anchors.get(anchor)
        if part is None:
            why = "holds itself" if anchor in self._anchors else "is not defined before"
            raise self._refused(f"not valid YAML: the alias {anchor[:SHOWN]!r} {why}")
        return part

    def _tag(self, event: Any) -> str:
        if event.tag and event.tag != "!":
            return str(event.tag)
        return str(self._yaml.resolver.resolve(ScalarNode, event.value, event.implicit))

    def _scalar(self, event: Any) -> Any:
        kind = self._tag(event).removeprefix(CORE)
        if kind == "null":
            return None
        if kind == "bool":
            return event.value.lower() == "true"
        return self._number(event.value, kind) if kind in ("int", "float") else event.value

    def _number(self, text: str, kind: str) -> int | float:
        if len(text) > LONGEST_NUMBER:
            raise self._refused(f"a number of {len(text)} characters")
        construct = getattr(self._yaml.constructor, f"construct_yaml_{kind}")
        try:
            number: int | float = construct(ScalarNode(f"{CORE}{kind}", text))
        except (ValueError, IndexError):
            raise self._refused(f"not valid YAML: {text!r} is no number") from None
        if not math.isfinite(number):
            raise self._refused(f"found {text}; allowed: a finite number")
        return number

    def _count(self, more: int) -> None:
        self._entries += more
        if self._entries > MOST_ENTRIES:
            raise self._refused(f"more than {MOST_ENTRIES} entries, aliases followed")
        if max(len(self._anchors), self._aliases) > MOST_ALIASES:
            raise self._refused(f"more than {MOST_ALIASES} anchors or aliases")

    def _require_depth(self, depth: int) -> None:
        if depth > DEEPEST:
            raise self._refused(f"not valid YAML: nested more than {DEEPEST} deep")

    def _refused(self, message: str) -> YamlError:
        return YamlError(message, self._shown_path())

    def _shown_path(self) -> str:
        return "".join(self._path).removeprefix(".")


def _collection(value: Any, parts: list[_Part]) -> _Part:
    entries = 1 + sum(part.entries for part in parts)
    return _Part(value, entries, 1 + max((part.depth for part in parts), default=0))


def _shown(key: object) -> str:
    text = str(key)[:SHOWN]
    return text if text.isprintable() else ascii(text)[1:-1]


def _place(mark: StreamMark) -> str:
    """Line and column of the parser's mark, both counted from 1."""
    return f"{mark.line + 1}:{mark.column + 1}"


def _one_line(error: object) -> str:
    return clipped(" ".join(str(error).split()), 300)
