"""How a release is ended. Only what stops one needs to know, and it imports all engines."""

from moorage.engines.stopping import Ending, ending
from moorage.releases.release_row import ReleaseRow
from moorage.spec import StoppingSpec


def ending_of(row: ReleaseRow) -> Ending:
    """How a release is ended: as its record says, or by default."""
    record = row.release
    return ending(record.spec.stopping, record.plan) if record else ending(StoppingSpec(), None)
