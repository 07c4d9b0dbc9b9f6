"""A saga: every effect has its undo, armed before the effect happens.

When the block fails or is cancelled, the undos run, the latest first. A failing undo does not stop
the others. An undo must be safe to run even if its effect never happened. An undo that returns
`False` found nothing to undo, or kept the effect; it is not reported.

Prefect's transactions are not used for this: a rollback hook that raises makes them skip the rest,
and a task with retries inside rolls its siblings back on the first failed attempt.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, ParamSpec

P = ParamSpec("P")

HARMLESS = (Exception, SystemExit)
"""Exceptions that do not stop the undos: writing to a closed terminal may raise `SystemExit`."""


class Saga:
    """Undoes the effects of its block when the block raises.

    Args:
        report: Called after each undo with its error; None = it succeeded.
        call: Runs all undos, uninterrupted by signals. The caller supplies it because that needs
            threads, which the core does not use.

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
