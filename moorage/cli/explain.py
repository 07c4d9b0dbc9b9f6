"""`moorage explain`: what a field of a file, or the cause of a failure, means."""

from typing import Annotated

import typer

from moorage.cli.options import AsJson
from moorage.cli.output import dump, print_table, say
from moorage.common.failures import Cause
from moorage.reports.field_reference import Explained
from moorage.reports.field_reference import explain as explained


def explain(
    name: Annotated[
        str,
        typer.Argument(
            help="A field such as placement.ram, fleet.hosts or policy, or a cause such as no-fit."
        ),
    ] = "spec",
    as_json: AsJson = False,
) -> None:
    """Say what a field of a spec, fleet or policy file means, or why something failed."""
    if name in {cause.value for cause in Cause}:
        return _explain_cause(Cause(name), as_json=as_json)
    found = explained(name)
    return dump(found) if as_json else _show(found)


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
    say(f"What to do: {cause.suggestion}")
    again = "is tried again by itself" if cause.retryable else "is not tried again"
    return say(f"It {again}; commands end with {int(cause.exit_code)}.")


def _show(found: Explained) -> None:
    say(found.path, style="bold")
    if found.kind:
        say(f"type: {found.kind}\ndefault: {found.default}")
    say(found.text)
    if found.fields:
        rows = [(name, one.kind, one.default, one.text) for name, one in found.fields.items()]
        say("")
        print_table(("field", "type", "default", "meaning"), rows)
