"""`moorage approvals` and `approve`: what waits for a person, and the answer."""

from __future__ import annotations

from typing import Annotated

import typer

from moorage.cli.flows import guarded
from moorage.cli.output import dump, out, print_table
from moorage.operations.redeploy.question import Answer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def approvals(
    plan: Annotated[bool, typer.Option("--plan", help="Show what each of them would do.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the deployments that wait for a person's approval on the Prefect server."""
    from moorage.adapters.prefect.approvals import waiting  # noqa: PLC0415  (imports Prefect)

    found = guarded(waiting, as_json=as_json)
    if as_json:
        dump([one.model_dump(mode="json") for one in found])
        return
    rows = [
        (one.id[:8], one.name, f"{one.until:%Y-%m-%d %H:%M:%S} UTC" if one.until else "")
        for one in found
    ]
    print_table(("run", "name", "refused after"), rows, empty="Nothing waits for approval.")
    for one in found if plan else ():
        out.print(f"\n{one.name}\n\n{one.plan}", markup=False, highlight=False)


def approve(
    named: Annotated[
        str, typer.Argument(metavar="RUN|NAME", help="Its id, its name, or the model's name.")
    ],
    refuse: Annotated[bool, typer.Option("--refuse", help="Say no.")] = False,
    note: Annotated[str, typer.Option(help="Why; it is kept in the run's log.")] = "",
    as_json: AsJson = False,
) -> None:
    """Agree to a deployment that waits, or refuse it."""
    from moorage.adapters.prefect.approvals import Waiting, answer, the_one  # noqa: PLC0415  (as above)

    said = Answer(approve=not refuse, note=note)

    def action() -> Waiting:
        one = the_one(named)
        answer(one, said)
        return one

    one = guarded(action, as_json=as_json)
    if as_json:
        return dump({"run": one.model_dump(mode="json"), "answer": said.model_dump()})
    return out.print(f"{one.name} is {'refused' if refuse else 'approved'}", highlight=False)
