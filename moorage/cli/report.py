"""`moorage report`: write the site as one HTML file."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from moorage.adapters.files.report_file import NAME, is_foreign, write_report
from moorage.adapters.ledger import Ledger
from moorage.cli.options import AsJson, Yes, open_ledger, require_consent
from moorage.cli.output import print_answer
from moorage.reports.site_report import Site, site_page

RELEASES = 30
"""Most releases shown of each model; older ones are left out."""


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where index.html is written.")],
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Write the site as one HTML file: models, hosts, history, memory and failures.

    The file loads nothing, so that it can be mailed or put on any web server.
    """
    path = folder / NAME
    if is_foreign(path):
        require_consent(f"Replace {path}, which is no report?", yes=yes, as_json=as_json)
    write_report(path, site_page(_site(open_ledger())))
    print_answer({"file": str(path)}, f"wrote {path}", as_json=as_json)


def _site(ledger: Ledger) -> Site:
    models = ledger.releases.models()
    return Site(
        at=datetime.now(UTC),
        histories={one: tuple(ledger.releases.of_model(one, RELEASES)) for one in models},
        claims=ledger.claims.all(),
        capacities=ledger.unseen_hosts.capacities(),
        unseen=frozenset(ledger.unseen_hosts.unseen()),
    )
