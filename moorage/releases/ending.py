"""The ending of a release. A module of its own because it imports all engines."""

from moorage.engines.stopping import Ending, ending
from moorage.releases.release_row import ReleaseRow
from moorage.spec import StoppingSpec


def ending_of(row: ReleaseRow) -> Ending:
    """How to stop a release: by the spec in its record, else by the defaults."""
    record = row.release
    return ending(record.spec.stopping, record.plan) if record else ending(StoppingSpec(), None)
