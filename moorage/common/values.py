"""The base of all values: frozen, strict, and shown as a form in the Prefect UI."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from operator import attrgetter
from typing import Any, ClassVar, Self, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

WRITTEN = {
    **{word: word.upper() for word in ("api", "cuda", "ipc", "kv", "nccl", "ram", "ssh", "tls")},
    **{"args": "arguments", "env": "environment", "lora": "LoRA", "shm": "shared memory"},
}
"""Words of field names, with people's spelling of them."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*")


def as_form(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Give every field of a schema a title and a position; for `json_schema_extra`.

    Without a title the form would show the class name of a nested model. `position` is needed
    because PostgreSQL does not keep the order of keys: required fields come first, sections last.
    """
    schema["title"] = in_words(" ".join(_WORD.findall(model.__name__.removesuffix("Spec"))))
    ranks = {name: _rank(model, name) for name in schema.get("properties", {})}
    for position, name in enumerate(sorted(ranks, key=lambda name: ranks[name])):
        schema["properties"][name].update(title=in_words(name), position=position)


def in_words(name: str) -> str:
    """A field's name as a heading: `keep_cache` is `Keep cache`."""
    words = name.lower().replace("_", " ").split()
    heading = " ".join(WRITTEN.get(word, word) for word in words)
    return heading[:1].upper() + heading[1:]


def _rank(model: type[BaseModel], name: str) -> int:
    field = model.model_fields[name]
    return 0 if field.is_required() else 2 if _has_model(field.annotation) else 1


def _has_model(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return True
    return any(map(_has_model, get_args(annotation)))


class Value(BaseModel):
    """A frozen value. Unknown keys are refused, so that no typo passes silently."""

    # A wrong value may be a secret, so errors do not repeat it: they may be logged.
    # Validators are built on first use: most commands use few of those that they import.
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        json_schema_extra=as_form,
        defer_build=True,
    )

    @classmethod
    def defaults(cls) -> Self:
        """A value with all defaults. Unlike a call of the class, it builds no validator."""
        return super().model_construct()

    @classmethod
    def from_record(cls, written: Any) -> Self:
        """A value that the ledger holds, which a newer moorage may have written.

        What was accepted once stays readable, and fields that are not known here are left out, also
        those of nested values: in a shared ledger machines may have different versions of moorage.
        """
        return cls.model_validate(written, context=RECORDED, extra="ignore")

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some fields replaced, unchecked: faster than pydantic's."""
        if deep:
            return super().model_copy(update=update, deep=True)
        values, changes = self.__dict__.copy(), update or {}
        values.update(changes)
        copy = object.__new__(type(self))
        object.__setattr__(copy, "__dict__", values)
        given = self.__pydantic_fields_set__
        if not changes.keys() <= given:
            given = given | changes.keys()
        object.__setattr__(copy, "__pydantic_fields_set__", given)
        object.__setattr__(copy, "__pydantic_extra__", None)
        object.__setattr__(copy, "__pydantic_private__", None)
        return copy


fields = attrgetter("__dict__")
"""The fields of a value by name: halves the time to read several fields of thousands of values."""


class Origin(StrEnum):
    """The origin of a derived value; every flag, variable and choice has one."""

    USER = "user"
    """Set in the spec."""

    DEFAULT = "default"
    """The documented default."""

    DERIVED = "derived"
    """Derived from the model, the host or the placement."""


REFUSED = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufff9-\ufffb"
)
"""Control characters, line separators, marks that change the text direction, lone surrogates."""

IN_LINES = re.compile(f"[{REFUSED}]")
"""Characters refused in a text of several lines, which may contain line feeds and tabs."""

IN_A_LINE = re.compile(f"[\t\n\u061c\u200e\u200f\ufeff{REFUSED}]")
"""Characters refused in any other text."""

LARGEST = 2**63 - 1
"""Largest number: databases cannot store larger ones, and no count, duration or size needs them."""

LONGEST = 100_000
"""Most characters of a text; Linux accepts 131,072 bytes as one word of a command line."""

MOST_ENTRIES = 10_000
"""Most entries of a list or mapping, including nested ones."""

DEEPEST = 16
"""Most levels of nested lists and mappings, where a field accepts any value."""

RECORDED = {"recorded": True}
"""Context for validating values of a record: values that were accepted once stay readable."""

Path = tuple[int | str, ...]


class InputValue(Value):
    """A value from a user's file.

    Whatever the types of its fields, its texts have no control characters, its numbers are finite,
    and its lists and mappings have a limit. Values from a record are not checked again
    (`RECORDED`).
    """

    model_config = ConfigDict(allow_inf_nan=False)

    multiline: ClassVar[frozenset[str]] = frozenset()
    """Fields whose texts may contain line feeds and tabs."""

    @field_validator("*")
    @classmethod
    def _check_texts(cls, value: Any, info: ValidationInfo) -> Any:
        if info.context == RECORDED:
            return value
        refused = IN_LINES if info.field_name in cls.multiline else IN_A_LINE
        mistakes = [
            InitErrorDetails(type=mistake, loc=path, input=None)
            for path, mistake in _mistakes(value, refused)
        ]
        if mistakes:
            raise ValidationError.from_exception_data(cls.__name__, mistakes, hide_input=True)
        return value


def _mistakes(value: Any, refused: re.Pattern[str]) -> Iterator[tuple[Path, PydanticCustomError]]:
    """Places in a field's value that no field may contain; nested values checked themselves."""
    waiting: list[tuple[Path, Any]] = [((), value)]
    seen = 0
    while waiting:
        path, item = waiting.pop()
        seen += 1
        if seen > MOST_ENTRIES or len(path) > DEEPEST:
            limit = f"{MOST_ENTRIES} entries" if seen > MOST_ENTRIES else f"{DEEPEST} levels"
            yield (), PydanticCustomError("too_large", "at most {limit}", {"limit": limit})
            return
        if mistake := _mistake(item, refused):
            yield path, mistake
        elif isinstance(item, Mapping):
            for key, inner in item.items():
                waiting.append(((*path, str(key)), inner))
                if isinstance(key, str) and (mistake := _mistake(key, refused)):
                    yield (*path, key, "[key]"), mistake
        elif isinstance(item, list | tuple | set | frozenset):
            waiting += [((*path, index), inner) for index, inner in enumerate(item)]


def _mistake(item: Any, refused: re.Pattern[str]) -> PydanticCustomError | None:
    if isinstance(item, str) and len(item) > LONGEST:
        detail = "a text of at most {limit} characters"
        return PydanticCustomError("too_large", detail, {"limit": LONGEST})
    if isinstance(item, str) and (match := refused.search(item)):
        return PydanticCustomError(
            "unprintable",
            "a text without control characters; it has {character} at position {position}",
            {"character": f"U+{ord(match[0]):04X}", "position": match.start()},
        )
    if isinstance(item, int | float) and not abs(item) <= LARGEST:
        detail = "a finite number of at most {limit}"
        return PydanticCustomError("too_large", detail, {"limit": LARGEST})
    return None
