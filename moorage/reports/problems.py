"""Mistakes in users' files, each with its path, the value found and the allowed values."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self, get_args

from pydantic import BaseModel, ValidationError

from moorage.common.printable import clipped
from moorage.common.redaction import HIDDEN, Redactor
from moorage.common.values import Value
from moorage.inventory.fleet import PATTERNS_IN_WORDS as FLEET_PATTERNS
from moorage.policy.rules import PATTERNS_IN_WORDS as POLICY_PATTERNS
from moorage.releases.requester import PLAIN_TEXT_PATTERN
from moorage.spec import PATTERNS_IN_WORDS as SPEC_PATTERNS
from moorage.spec.patterns import IN_CLEAR, SOURCE_PATTERN

UNKNOWN = Redactor({})
"""Redacts texts that look like secrets."""

PATTERNS_IN_WORDS = {
    **SPEC_PATTERNS,
    **FLEET_PATTERNS,
    **POLICY_PATTERNS,
    PLAIN_TEXT_PATTERN: "a text without control characters",
}

MESSAGES_IN_WORDS = {
    "a valid string": "text, in quotes",
    "a valid integer": "a whole number",
    "a valid number": "a number",
    "a valid boolean": "true or false",
    "a valid list": "a list",
    "a valid tuple": "a list",
    "a valid dictionary": "keys and values",
    "greater than or equal to ": "at least ",
    "less than or equal to ": "at most ",
    "greater than ": "more than ",
}
"""Beginnings of pydantic's messages, and plainer words for them."""

BARE_WORDS = {None: "nothing", True: "true", False: "false"}
"""YAML's spelling of values that Python spells differently."""

LONGEST = 60
"""Most characters shown of a value, and of a step of a path."""

LONGEST_MESSAGE = 600
MOST_BITS = 200
"""Most bits of an integer that is shown: Python formats longer ones slowly, or refuses."""

MOST_MISTAKES = 50
"""Most mistakes that are reported for one value."""


class Problem(Value):
    """One mistake: the path of the field, the value found, a message, and the nearest allowed word.

    The file is empty when the value did not come from a file. `place` is the line and column of the
    field in the file, such as `4:3`, or of the enclosing part where the field is missing.
    """

    file: str
    path: str
    found: str
    message: str
    nearest: str = ""
    place: str = ""

    def __str__(self) -> str:
        where = f"{':'.join(filter(None, (self.file, self.place)))}: " if self.file else ""
        hint = f" Did you mean '{self.nearest}'?" if self.nearest else ""
        field = f"{self.path or '(top level)'}: " if self.path or not self.file else ""
        return f"{where}{field}{self.message}{hint}"

    def position(self) -> tuple[int, ...]:
        """Its line and column, for sorting; empty where they are unknown."""
        return tuple(int(number) for number in self.place.split(":") if number)

    def placed(self, places: Mapping[str, str]) -> Self:
        """The same problem with the place of its field, or of the innermost enclosing part."""
        field = self.path
        while field and field not in places:
            field = field[: max(field.rfind("."), field.rfind("["), 0)]
        return self.model_copy(update={"place": places.get(field, "")})


def problems_of(error: ValidationError, model: type[BaseModel], file: str = "") -> list[Problem]:
    """Turn pydantic's errors into problems; errors of one union's branches become one problem."""
    merged: dict[str, Problem] = {}
    entries = error.errors(include_url=False)
    for entry in entries[:MOST_MISTAKES]:
        if entry["type"] == "too_short" and entry.get("input"):
            continue  # pydantic counts invalid items as absent; they have errors of their own
        problem = _problem(entry, model, file)
        before = merged.get(problem.path)
        if before is None:
            merged[problem.path] = problem
            continue
        other = problem.message.removeprefix(f"found {problem.found}; ").removeprefix("allowed: ")
        if other not in before.message:
            message = clipped(f"{before.message.rstrip('.')}, or {other}", LONGEST_MESSAGE)
            both = {"message": message, "nearest": before.nearest or problem.nearest}
            merged[problem.path] = before.model_copy(update=both)
    # A mistake inside one branch of a union says more than the refusals of the other branches.
    found = [
        problem
        for path, problem in merged.items()
        if not any(other.startswith((f"{path}.", f"{path}[")) for other in merged)
    ]
    if (more := len(entries) - MOST_MISTAKES) > 0:
        found.append(Problem(file=file, path="", found="", message=f"and {more} more mistakes."))
    return found


def _problem(entry: Mapping[str, Any], model: type[BaseModel], file: str) -> Problem:
    kind, context = entry["type"], entry.get("ctx", {})
    steps, owner = _walk(entry["loc"], model, keep_last=kind == "extra_forbidden")
    found, nearest = _found(entry), ""
    if kind == "extra_forbidden":
        allowed = sorted(owner.model_fields)
        message = f"unknown key; allowed are {', '.join(allowed)}."
        nearest = _inside(steps[-1], owner) or nearest_of(steps[-1], allowed)
    elif kind == "missing":
        found, message = "nothing", "is required, but missing."
    elif kind in ("enum", "literal_error"):
        allowed = [word.strip("' ") for word in context["expected"].replace(" or ", ",").split(",")]
        message = f"found {found}; allowed: {', '.join(allowed)}."
        nearest = nearest_of(excerpt(entry.get("input")).strip("'"), allowed)
    elif kind == IN_CLEAR:
        message = f"{entry['msg']}."
    elif kind == "string_pattern_mismatch":
        wanted = PATTERNS_IN_WORDS.get(
            context["pattern"], f"a text that matches {context['pattern']}"
        )
        message = f"found {found}; allowed: {wanted}."
        if context["pattern"] == SOURCE_PATTERN:
            nearest = _with_scheme(str(entry.get("input")))
    elif kind == "value_error" and isinstance(entry.get("input"), dict):
        # It is about several fields: all of them would hide what is wrong.
        message = f"{entry['msg'].removeprefix('Value error, ')}."
    elif kind == "model_type":
        message = f"found {found}; allowed: a mapping of its fields."
    else:
        message = in_words(entry["msg"], found)
    return Problem(
        file=file,
        path=".".join(steps),
        found=found,
        message=clipped(message, LONGEST_MESSAGE),
        nearest=nearest,
    )


def in_words(message: str, found: str) -> str:
    """Pydantic's message about a value, in plainer words."""
    text = message.removeprefix("Value error, ").removeprefix("Input should be ")
    if text == message:
        return f"{text}."
    text = text.partition(", unable to ")[0]
    if begins := next(filter(text.startswith, MESSAGES_IN_WORDS), ""):
        text = MESSAGES_IN_WORDS[begins] + text.removeprefix(begins)
    return f"found {found}; allowed: {text}."


def nearest_of(word: str, allowed: Iterable[str]) -> str:
    """The allowed word that the user probably meant; empty = none is close."""
    close = difflib.get_close_matches(word[:LONGEST].lower(), list(allowed), n=1, cutoff=0.55)
    return close[0] if close else ""


def _walk(
    location: tuple[str | int, ...], model: type[BaseModel], *, keep_last: bool
) -> tuple[list[str], type[BaseModel]]:
    """The field's path without pydantic's names of union branches, and the model of the field."""
    steps: list[str] = []
    owner = model
    current: Any = model
    for position, step in enumerate(location):
        last = position == len(location) - 1
        if isinstance(step, int) and not steps:
            steps.append(str(step))
        elif isinstance(step, int):
            steps[-1:] = [f"{steps[-1]}[{step}]"]
        elif _is_model(current) and (step in current.model_fields or (keep_last and last)):
            owner = current
            steps.append(shown_step(step))
            field = current.model_fields.get(step)
            current = (inner_model(field.annotation) or field.annotation) if field else None
        elif getattr(current, "__origin__", None) is dict and step != "[key]":
            steps.append(shown_step(step))
            current = None
    return steps, owner


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def inner_model(annotation: Any) -> type[BaseModel] | None:
    """The model in an annotation such as `tuple[Model, ...] | None`; None = there is none."""
    if _is_model(annotation):
        return annotation  # type: ignore[no-any-return]
    return next((found for part in get_args(annotation) if (found := inner_model(part))), None)


def _inside(word: str, owner: type[BaseModel]) -> str:
    """The field with this name one level deeper, such as `engine.env` for `env`; empty = none."""
    for name, field in owner.model_fields.items():
        if (inner := inner_model(field.annotation)) and word in inner.model_fields:
            return f"{name}.{word}"
    return ""


def _with_scheme(source: str) -> str:
    """A valid source for one without a scheme, or for the address of a page; empty = none."""
    name = source.removeprefix("https://huggingface.co/")
    mended = f"{'file://' if name.startswith('/') else 'hf://'}{name}"
    is_shown = len(mended) <= LONGEST and UNKNOWN(mended) == mended
    return mended if is_shown and re.fullmatch(SOURCE_PATTERN, mended) else ""


def _found(entry: Mapping[str, Any]) -> str:
    """The value found, hidden where it is a secret in place of a secret's name."""
    place = entry["loc"]
    if entry["type"] == IN_CLEAR or ("secrets" in place[:1] and place[-1] != "[key]"):
        return HIDDEN
    return UNKNOWN(excerpt(entry.get("input")))


def excerpt(value: Any) -> str:
    """The beginning of a value as text. Large and self-referencing values are not read further."""
    text = ""
    for piece in _pieces(value):
        text += piece
        if len(text) > LONGEST:
            break
    return clipped(text, LONGEST)


def shown_step(step: object) -> str:
    """A step of a path, such as a key of a mapping, as one line of limited length."""
    text = clipped(excerpt(step) if isinstance(step, int) else str(step), LONGEST)
    return text if text.isprintable() else ascii(text)[1:-1]


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield "{"
        for at, (key, inner) in enumerate(value.items()):
            yield ", " * bool(at)
            yield from _pieces(key)
            yield ": "
            yield from _pieces(inner)
        yield "}"
    elif isinstance(value, list | tuple):
        yield "[" if isinstance(value, list) else "("
        for at, inner in enumerate(value):
            yield ", " * bool(at)
            yield from _pieces(inner)
        yield "]" if isinstance(value, list) else ")"
    elif isinstance(value, str):
        yield repr(value[: LONGEST + 1])
    elif value is None or isinstance(value, bool):
        yield BARE_WORDS[value]
    elif isinstance(value, int) and value.bit_length() > MOST_BITS:
        yield f"a number of {value.bit_length()} bits"
    else:
        yield repr(value)
