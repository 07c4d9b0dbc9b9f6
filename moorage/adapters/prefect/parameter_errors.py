"""Rewords the errors of parameters at Prefect's server: all of them at once, in plain words.

Prefect itself reports the first mistake only, with the regular expression that a text should match.
A schema may describe its pattern in words in `patternErrorMessage`, a keyword that editors know.

Like `api_server`, which uses it, this module needs Prefect only.
"""

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

from jsonschema.exceptions import ValidationError as Mistake

LONGEST = 60
"""Limit of the characters of a shown value."""

MOST = 50
"""Limit of the reported mistakes."""

CHOSEN = frozenset({"const", "enum", "pattern", "type"})
"""Keywords that restrict a value itself."""


INSIDE = frozenset({"additionalProperties", "required"})
"""Keywords that restrict the keys inside a value."""


def patch_parameter_errors() -> None:
    """Make the API and the forms of the server in this process report mistakes in these words."""
    from prefect.server.api import deployments  # noqa: PLC0415  (takes seconds)
    from prefect.server.api.ui import schemas  # noqa: PLC0415

    deployments.validate = schemas.validate = validate  # type: ignore[assignment, attr-defined]


def validate(
    obj: dict[str, Any], schema: dict[str, Any], raise_on_error: bool = False, **options: Any
) -> list[Mistake]:
    """Replacement of Prefect's function of this name, with reworded mistakes.

    Raises:
        ValidationError: Prefect's, with a line for each mistake, if `raise_on_error` is set.
    """
    from prefect.utilities.schema_tools import validation  # noqa: PLC0415  (as above)

    found = list(mistakes(validation.validate(obj, schema, **options)))[:MOST]
    if found and raise_on_error:
        raise validation.ValidationError("\n".join(map(_line, found)))
    return found


def mistakes(errors: Iterable[Mistake]) -> Iterator[Mistake]:
    """The errors of a JSON Schema in plain words.

    If a field accepts several kinds of value, a mistake inside one kind replaces the refusals of
    the other kinds, because it says more.
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
    """The same mistake with another message and its absolute path."""
    return Mistake(
        message,
        validator=error.validator,
        path=(*error.absolute_path, *further),
        instance=error.instance,
        schema=error.schema,
    )


def _message(error: Mistake) -> str:
    if error.validator == "required":
        # The server's forms parse the field's name from the beginning of the message.
        return f"{error.message.removesuffix(' is a required property')} is required, but missing."
    if error.validator == "not":  # the value may be a secret
        refused = cast("dict[str, Any]", error.validator_value)
        return f"{refused.get('patternErrorMessage', 'this value is not allowed')}."
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
