"""Finding the release that a person means."""

from __future__ import annotations

from moorage.adapters.ledger import Ledger
from moorage.failures import Cause, Failure
from moorage.history.targets import one_of
from moorage.release import Release, ReleaseRow


def release_of(ledger: Ledger, text: str) -> ReleaseRow:
    """The release of that id, what serves a model of that name, or the only id that begins so.

    Raises:
        Failure: `UNKNOWN_RELEASE`.
    """
    releases = ledger.releases
    named = releases.running(text) or next(iter(releases.of_model(text)), None)
    return named or releases.get(one_of(text, releases.ids(text)))


def record_of(ledger: Ledger, text: str) -> Release:
    """The record of a release.

    Raises:
        Failure: `UNKNOWN_RELEASE`, also when it has no record that this version can read.
    """
    row = release_of(ledger, text)
    if row.release is None:
        why = "another version wrote its record" if row.foreign_record else "it has no record"
        raise Failure(Cause.UNKNOWN_RELEASE, f"{row.id} is {row.state}; {why}")
    return row.release
