"""A saga: every effect has its undo, armed before the effect happens.

When the block fails, or is cancelled, the undos run, the latest first. One that fails does not keep
the others from running. An undo must be safe to run when its effect never happened. One that
returns `False` has found nothing to undo, or that its effect stays; it is not reported.

Prefect's transactions are not used for this: a rollback hook that raises makes them skip the rest,
and a task with retries inside rolls its siblings back on the first failed attempt.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, ParamSpec

P = ParamSpec("P")

HARMLESS = (Exception, SystemExit)
"""What does not end an undoing: writing to a terminal that is gone may raise `SystemExit`."""


class Saga:
    """Undoes what was done when its block does not end well.

    Args:
        report: Told each undo that runs, with the error of one that fails.
        call: Runs all undos. A signal that arrives meanwhile must not cut them short; that takes
            threads, which the core does not know.

    Example:
        ```python
        with Saga(report) as saga:
            saga.arm("free the claims", ledger.claims.free, release)
            ledger.claims.commit(release, claims, fleet)
        ```
    """

    def __init__(
        self,
        report: Callable[[str, BaseException | None], None],
        call: Callable[[Callable[[], None]], None] = lambda undo: undo(),
    ) -> None:
        self._report, self._call = report, call
        self._undos: list[tuple[str, Callable[[], Any]]] = []

    def arm(self, label: str, undo: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> None:
        """Register the undo of an effect that is about to happen."""
        self._undos.append((label, lambda: undo(*args, **kwargs)))

    def __enter__(self) -> Saga:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is not None:
            self._call(self._undo)

    def _undo(self) -> None:
        for label, undo in reversed(self._undos):
            failed: BaseException | None = None
            try:
                if undo() is False:
                    continue
            except HARMLESS as trouble:
                failed = trouble
            with suppress(*HARMLESS):  # an undo runs even if its report fails
                self._report(label, failed)
