"""`moorage explain`: the meaning of a file's field or of a failure's cause."""

import sys
from typing import Annotated

import typer

from moorage.cli.options import AsJson
from moorage.cli.output import dump, out, print_table, say
from moorage.common.failures import Cause, Failure
from moorage.common.printable import clipped
from moorage.reports.field_reference import FILES, NESTED, REQUIRED, Explained, FieldDescription
from moorage.reports.field_reference import explain as explained
from moorage.reports.file_schema import file_schema
from moorage.reports.problems import LONGEST


def explain(
    name: Annotated[
        str,
        typer.Argument(
            help="A field such as placement.ram, fleet.hosts or policy, or a cause such as no-fit."
        ),
    ] = "spec",
    json_schema: Annotated[
        bool,
        typer.Option(
            "--json-schema", help="Print the JSON Schema of spec, fleet or policy, for editors."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say what a field of a spec, fleet or policy file means, or why something failed."""
    if json_schema:
        return _print_schema(name)
    if name in {cause.value for cause in Cause}:
        return _explain_cause(Cause(name), as_json=as_json)
    found = explained(name)
    return dump(found) if as_json else _show(found)


def _print_schema(file: str) -> None:
    if file not in FILES:
        raise Failure(
            Cause.BAD_SETTING,
            f"only a whole file has a JSON Schema, and '{clipped(file, LONGEST)}' is none",
            suggestion=f"Name one of {', '.join(FILES)}.",
        )
    sys.stdout.write(file_schema(file))


def _explain_cause(cause: Cause, *, as_json: bool) -> None:
    content = {
        "cause": cause,
        "summary": cause.summary,
        "suggestion": cause.suggestion,
        "exit_code": int(cause.exit_code),
        "retryable": cause.retryable,
    }
    if as_json:
        return dump(content)
    say(cause.summary, style="bold")
    _tell(f"What to do: {cause.suggestion}")
    again = "is tried again by itself" if cause.retryable else "is not tried again"
    return say(f"It {again}; commands end with {int(cause.exit_code)}.")


def _show(found: Explained) -> None:
    say(found.path, style="bold")
    if found.kind and NESTED not in found.kind:
        say(f"type: {found.kind}\ndefault: {found.default}")
    _tell(found.text)
    if found.fields:
        say("")
        rows = [_row(found.path, name, one) for name, one in found.fields.items()]
        print_table(("field", "meaning"), rows)


def _row(path: str, name: str, field: FieldDescription) -> tuple[str, str]:
    """A table row of a field; meaning and type share a column, since two would be too narrow."""
    default = field.default if field.default == REQUIRED else f"default {field.default}"
    kind = f"{field.kind}; {default}"
    if NESTED in field.kind:
        inside = name if path == "spec" else f"{path}.{name}"
        kind = f"It has fields of its own: `moorage explain {inside}`."
    return name, f"{field.text}\n{kind}\n"


def _tell(prose: str) -> None:
    """Print sentences, wrapped between words on a terminal."""
    out.print(prose, markup=False, highlight=False, soft_wrap=not out.is_terminal)
