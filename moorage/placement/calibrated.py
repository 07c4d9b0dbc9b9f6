"""What earlier starts measured corrects what is predicted for the next one."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.common.refusal import Refusal
from moorage.common.units import human_bytes
from moorage.memory.calibration import Measurement, apply
from moorage.memory.calibration_key import (
    BATCHED,
    PIPELINE,
    SEQUENCES,
    TENSOR,
    CalibrationKey,
    calibration_key,
)
from moorage.memory.estimates import Term
from moorage.memory.need import Need
from moorage.models.profile import ModelProfile
from moorage.placement.demand import Memory


class CalibratedMemory:
    """A memory model whose estimates give way to measurements of the same settings.

    Args:
        exact: The memory model.
        profile: The model.
        engine: Name of the engine.
        version: Its version.
        arguments: Engine arguments of the spec: what its fields make, then the user's own.
        measured: What starts of this model's architecture told, the newest first.
    """

    def __init__(
        self,
        exact: Memory,
        profile: ModelProfile,
        engine: str,
        version: str,
        arguments: Sequence[str],
        measured: Sequence[Measurement],
    ) -> None:
        self._exact, self._profile = exact, profile
        self._engine, self._version, self._arguments = engine, version, tuple(arguments)
        self._measured = measured

    def need(
        self,
        *,
        total: int,
        device_name: str,
        tensor: int,
        pipeline: int,
        tokens: int,
        concurrency: int,
    ) -> Need | Refusal:
        """What one accelerator has to give."""
        need = self._exact.need(
            total=total,
            device_name=device_name,
            tensor=tensor,
            pipeline=pipeline,
            tokens=tokens,
            concurrency=concurrency,
        )
        if isinstance(need, Refusal):
            return need
        found = self._found(device_name, tensor, pipeline, need)
        return _corrected(need, found) if found else need

    def _found(self, device: str, tensor: int, pipeline: int, need: Need) -> Measurement | None:
        """The newest measurement with these settings; a device's name tells its type."""
        sizes = {TENSOR[0]: tensor, PIPELINE[0]: pipeline}
        derived = [word for name, size in sizes.items() if size > 1 for word in (name, str(size))]
        # The launch says these too, where the need is exact.
        derived += [BATCHED[0], str(need.batch.tokens), SEQUENCES[0], str(need.batch.seqs)]
        key = calibration_key(
            self._profile, self._engine, self._version, "", device, (*derived, *self._arguments)
        )
        return next((one for one in self._measured if _untyped(one.key) == key), None)


def _untyped(key: CalibrationKey) -> CalibrationKey:
    return key.model_copy(update={"accelerator_type": ""})


def _corrected(need: Need, found: Measurement) -> Need:
    predicted = {term.name: term.bytes for term in need.terms}
    corrected = apply(predicted, found.residual(predicted))
    return need.model_copy(
        update={"terms": tuple(_term(term, corrected[term.name], found) for term in need.terms)}
    )


def _term(term: Term, measured: int, found: Measurement) -> Term:
    if measured == term.bytes:
        return term
    reason = f"as {found.release} measured; predicted {human_bytes(term.bytes)}"
    return term.model_copy(update={"bytes": measured, "exact": False, "reason": reason})
