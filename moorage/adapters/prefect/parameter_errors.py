"""What Prefect's server finds wrong with parameters, all of it at once and in plain words.

Prefect tells the first mistake alone, with the regular expression that a text should match. A
schema may say in words what its pattern asks for: `patternErrorMessage`, as editors know it.

It needs no more than Prefect, as `api_server`, which uses it.
"""

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

from jsonschema.exceptions import ValidationError as Mistake

LONGEST = 60
"""Characters of a value that is shown."""

MOST = 50
"""Mistakes that are told."""

CHOSEN = frozenset({"const", "enum", "pattern", "type"})
"""Keywords that say what a value may be."""


INSIDE = frozenset({"additionalProperties", "required"})
"""Keywords that refuse what a value has or lacks inside."""


def tell_mistakes() -> None:
    """Have the server of this process refuse parameters in these words: its API and its forms."""
    from prefect.server.api import deployments  # noqa: PLC0415  (takes seconds)
    from prefect.server.api.ui import schemas  # noqa: PLC0415

    deployments.validate = schemas.validate = validate  # type: ignore[assignment, attr-defined]


def validate(
    obj: dict[str, Any], schema: dict[str, Any], raise_on_error: bool = False, **options: Any
) -> list[Mistake]:
    """As Prefect's function of this name, which has no words of its own.

    Raises:
        ValidationError: Prefect's, with a line for each mistake, where errors are to be raised.
    """
    from prefect.utilities.schema_tools import validation  # noqa: PLC0415  (as above)

    found = list(mistakes(validation.validate(obj, schema, **options)))[:MOST]
    if found and raise_on_error:
        raise validation.ValidationError("\n".join(map(_line, found)))
    return found


def mistakes(errors: Iterable[Mistake]) -> Iterator[Mistake]:
    """The errors of a JSON Schema in plain words.

    Of a field that takes several kinds of value, the mistake inside of one says more than the
    others' refusals.
    """
    for error in errors:
        inner = [one for one in error.context or () if one.path or one.validator in INSIDE]
        if error.validator == "anyOf" and inner:
            yield from mistakes(inner)
        elif error.validator == "additionalProperties":
            yield from _unknown_keys(error)
        else:
            yield _reworded(error, _message(error))


def _line(mistake: Mistake) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in mistake.path)
    return f"{''.join(steps).lstrip('.') or 'parameters'}: {mistake.message}"


def _unknown_keys(error: Mistake) -> Iterator[Mistake]:
    schema, given = cast("dict[str, Any]", error.schema), cast("dict[str, Any]", error.instance)
    patterns = schema.get("patternProperties", ())
    names = filter(str.isidentifier, (one.strip("^$") for one in patterns))
    allowed = sorted([*schema.get("properties", ()), *names])
    for key in given:
        if key not in allowed and not any(re.search(one, key) for one in patterns):
            words = f"unknown key; allowed are {', '.join(allowed)}." if allowed else "unknown key."
            yield _reworded(error, f"{words}{_hint(key, allowed)}", key)


def _reworded(error: Mistake, message: str, *further: str) -> Mistake:
    """The same mistake with other words; its path is the whole one."""
    return Mistake(
        message,
        validator=error.validator,
        path=(*error.absolute_path, *further),
        instance=error.instance,
        schema=error.schema,
    )


def _message(error: Mistake) -> str:
    if error.validator == "required":
        # The server's forms read the field's name out of the beginning.
        return f"{error.message.removesuffix(' is a required property')} is required, but missing."
    kinds = error.context if error.validator == "anyOf" else [error]
    allowed = [_allowed(kind) for kind in kinds or () if kind.validator in CHOSEN]
    if not allowed:
        return f"{error.message}."
    words = ", or ".join(dict.fromkeys(allowed))
    listed = [word for kind in kinds or () for word in _words(kind)]
    return f"found {_shown(error.instance)}; allowed: {words}.{_hint(str(error.instance), listed)}"


def _allowed(error: Mistake) -> str:
    wanted: Any = error.validator_value
    match error.validator:
        case "pattern":
            schema = cast("dict[str, Any]", error.schema)
            words = schema.get("patternErrorMessage", f"a text that matches {wanted}")
            return str(words).removeprefix("Allowed: ").removesuffix(".")
        case "enum":
            return ", ".join(map(str, wanted))
        case "type":
            return " or ".join([wanted] if isinstance(wanted, str) else wanted)
    return str(wanted)


def _words(error: Mistake) -> list[str]:
    values: Any = error.validator_value if error.validator == "enum" else ()
    return [str(value) for value in values]


def _hint(found: str, allowed: list[str]) -> str:
    close = difflib.get_close_matches(found, allowed, 1)
    return f" Did you mean '{close[0]}'?" if close else ""


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
