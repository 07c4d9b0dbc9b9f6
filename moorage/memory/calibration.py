"""Calibration: measurements of earlier starts correct later predictions.

Weights and KV cache are exact; activation and CUDA graphs are estimates until an engine with the
same settings has logged what they really took.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from moorage.common.units import GIB
from moorage.common.values import Value
from moorage.memory.calibration_key import CalibrationKey
from moorage.readiness.measured import Measured

ROUNDING = GIB // 100
"""Bytes by which a logged size may be off, and with it a difference: two digits of a GiB."""


class Residual(Value):
    """Measured minus predicted, in bytes of one rank; None = not measured or not predicted.

    Attributes:
        weights: All that stays allocated except the cache and the graphs.
        activation: Peak of a forward pass.
        graphs: CUDA graphs.
        release: Release whose start was measured.
        measured_at: When, UTC.
    """

    weights: int | None = None
    activation: int | None = None
    graphs: int | None = None
    release: str = ""
    measured_at: datetime | None = None


class Measurement(Value):
    """What one workload measured, and what was predicted for it.

    Attributes:
        workload: Its name.
        key: Settings under which this holds.
        measured: The sizes that its log reports.
        predicted: Bytes of one rank by the name of the term; empty = nothing was predicted.
        release: Release that it belongs to.
        measured_at: When, UTC.
    """

    workload: str
    key: CalibrationKey
    measured: Measured
    predicted: dict[str, int] = {}
    release: str
    measured_at: datetime

    def residual(self, terms: Mapping[str, int]) -> Residual:
        """By how much a prediction for the same settings is off.

        Args:
            terms: That prediction, not corrected yet. The stored prediction may have been corrected
                itself, which would lose the correction.
        """
        found = residual(terms, self.measured)
        return found.model_copy(update={"release": self.release, "measured_at": self.measured_at})


def residual(predicted: Mapping[str, int], measured: Measured) -> Residual:
    """Measured minus predicted.

    Args:
        predicted: Bytes of one rank by term: `weights`, `buffers`, `redundancy`, `activation`,
            `cuda_graphs`; others are not measured.
        measured: What a start logged.
    """
    return Residual(
        weights=_difference(predicted, STAYING, measured.consumed_bytes)
        if measured.consumed_bytes is not None
        else _difference(predicted, LOADED, measured.weights_bytes),
        activation=_difference(predicted, ("activation",), measured.activation_bytes),
        graphs=_difference(predicted, ("cuda_graphs",), charged_graphs(measured)),
    )


def apply(terms: Mapping[str, int], residual: Residual) -> dict[str, int]:
    """The terms of a prediction, corrected by a measurement.

    Activation and graphs become what was measured, and never negative. Weights are exact, so what
    stays taken beyond them is only added.
    """
    corrected = dict(terms)
    for name, off in (("activation", residual.activation), ("cuda_graphs", residual.graphs)):
        if off is not None and name in terms:
            corrected[name] = max(0, terms[name] + off)
    if "weights" in terms and (residual.weights or 0) > ROUNDING:
        corrected["weights"] = terms["weights"] + (residual.weights or 0)
    return corrected


LOADED = ("weights", "buffers")
"""Terms that loading the model allocates."""

STAYING = (*LOADED, "redundancy")
"""Terms that stay allocated next to the cache; the redundancy is for what is not torch's."""


def charged_graphs(measured: Measured) -> int | None:
    """What graphs cost of the budget: vLLM keeps what it set aside, even if capturing took less."""
    known = [
        size for size in (measured.graph_bytes, measured.graph_reserve_bytes) if size is not None
    ]
    return max(known, default=None)


def _difference(
    predicted: Mapping[str, int], names: tuple[str, ...], measured: int | None
) -> int | None:
    """Measured minus the sum of the terms; None when either is not there."""
    if measured is None or names[0] not in predicted:
        return None
    return measured - sum(predicted.get(name, 0) for name in names)
