"""Reports on memory: the prediction, and the prediction next to measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from moorage.common.refusal import Reason, Refusal
from moorage.common.units import GIB, human_bytes
from moorage.memory.calibration import LOADED, STAYING, Measurement, charged_graphs
from moorage.memory.need import MemoryQuery, Term
from moorage.reports.document import Document, Section, facts

if TYPE_CHECKING:
    from moorage.memory.sizing import Answer, Device

COMPARED_COLUMNS = ("workload", "memory", "predicted", "measured", "difference")
UNKNOWN = "-"


def comparison_rows(measurements: Iterable[Measurement]) -> tuple[tuple[str, ...], ...]:
    """A row for each measurement that an engine logs; sizes are per rank."""
    return tuple((one.workload, *row) for one in measurements for row in _compared(one))


def _compared(one: Measurement) -> list[tuple[str, ...]]:
    measured = one.measured
    sizes = (
        ("weights", LOADED, measured.weights_bytes),
        ("weights and fixed buffers", STAYING, measured.consumed_bytes),
        ("activation", ("activation",), measured.activation_bytes),
        ("CUDA graphs", ("cuda_graphs",), charged_graphs(measured)),
        ("KV cache", ("kv_cache",), measured.kv_cache_bytes),
        ("worker process", (), measured.process_bytes),
    )
    rows: list[tuple[str, ...]] = [
        (title, *_sizes(one, terms, size)) for title, terms, size in sizes if size is not None
    ]
    if measured.kv_tokens is not None:
        rows.append(("tokens in the cache", UNKNOWN, f"{measured.kv_tokens:,}", UNKNOWN))
    if measured.concurrency is not None:
        title = f"requests of {measured.request_tokens or 0:,} tokens at once"
        rows.append((title, UNKNOWN, f"{measured.concurrency:.2f}", UNKNOWN))
    return rows


def _sizes(one: Measurement, terms: tuple[str, ...], size: int) -> tuple[str, str, str]:
    if not terms or terms[0] not in one.predicted:
        return UNKNOWN, human_bytes(size), UNKNOWN
    predicted = sum(one.predicted.get(term, 0) for term in terms)
    off = size - predicted
    return human_bytes(predicted), human_bytes(size), f"{'+' * (off > 0)}{human_bytes(off)}"


COLUMNS = ("part", "bytes", "GiB", "how")
SIZE_COLUMNS = (
    *("accelerator", "ranks", "outcome", "claim of each", "utilization", "longest context"),
    "batched tokens",
)


def refused(refusal: Refusal) -> str:
    """A refusal as one sentence."""
    if refusal.reason is Reason.REJECTED:
        return f"vLLM would not start: {refusal.note}"
    return f"Not known: {refusal.note}"


def answer_document(model: str, found: Answer) -> Document:
    """The memory on one accelerator; exact terms and estimates in separate tables."""
    need = found.need
    estimated = [term for term in need.terms if not term.exact]
    flags = "\n".join(found.flags) if found.fits else ""
    return Document(
        title=f"Memory of {model} on {_device(found.device)}",
        sections=(
            facts(_facts(found)),
            _table("Exact, by the engine's own accounting", [t for t in need.terms if t.exact]),
            _table("Estimated, within the engine's budget", [t for t in estimated if t.inside]),
            _table("Estimated, outside of it", [t for t in estimated if not t.inside]),
            Section(title="Flags of this estimate", code=flags),
        ),
    )


def sizes_document(
    model: str, question: MemoryQuery, rows: Sequence[tuple[Device, Answer | Refusal]]
) -> Document:
    """Common accelerator sizes, each with the fewest ranks that fit the model."""
    wanted = _requests(question.tokens, question.concurrency)
    return Document(
        title=f"Memory of {model}",
        sections=(
            Section(
                text=f"{wanted}; the smallest number of tensor-parallel ranks that fits.",
                header=SIZE_COLUMNS,
                rows=tuple(_size(device, found) for device, found in rows),
            ),
            Section(text="`--accelerator 24GiB` or a name shows one of them in detail."),
        ),
    )


def _table(title: str, terms: Sequence[Term]) -> Section:
    total = sum(term.bytes for term in terms)
    rows = [(term.name, f"{term.bytes:,}", _gib(term.bytes), term.reason) for term in terms]
    if len(rows) > 1:
        rows.append(("sum", f"{total:,}", _gib(total), ""))
    return Section(title=title, header=COLUMNS, rows=tuple(rows))


def _facts(found: Answer) -> list[tuple[str, str]]:
    need, total = found.need, found.device.total
    stated = ", as the spec states" if need.stated is not None else ""
    spread = f"{need.tensor_parallel_size} x {need.pipeline_parallel_size}"
    rows = [
        ("Ranks", f"{spread} (tensor x pipeline)"),
        ("For", _requests(need.tokens, need.concurrency)),
        ("Claim", f"{_gib(found.claim)} of {_gib(total)} GiB of each accelerator{stated}"),
        ("Outcome", "it fits" if found.fits else f"{_gib(found.claim - total)} GiB too much"),
        *([("Utilization", f"{found.utilization:g}")] if found.fits else []),
        ("Longest context", f"{found.longest} tokens at this concurrency"),
    ]
    if (cache := need.cache) and cache.bytes_per_block:
        block, size = human_bytes(cache.bytes_per_block), cache.block_size
        cells = f"{block} a block" + (f" of {size} tokens" if found.token_bytes else "")
        rows += [
            ("Requests that fit", f"{found.most_requests} of {need.tokens} tokens at once"),
            ("KV cache", f"{human_bytes(found.token_bytes)} for each further token, {cells}"),
        ]
    return rows


def _size(device: Device, found: Answer | Refusal) -> tuple[str, ...]:
    if isinstance(found, Refusal):
        return (_device(device), "", refused(found), "", "", "", "")
    need = found.need
    return (
        _device(device),
        str(need.tensor_parallel_size * need.pipeline_parallel_size),
        "fits" if found.fits else f"{_gib(found.claim - device.total)} GiB too much",
        f"{_gib(found.claim)} GiB",
        f"{found.utilization:g}" if found.fits else "",
        str(found.longest or "none"),
        str(need.batch.tokens),
    )


def _requests(tokens: int, concurrency: int) -> str:
    return f"{concurrency} request{'s' * (concurrency > 1)} of {tokens} tokens at once"


def _device(device: Device) -> str:
    size = f"{device.total / GIB:g} GiB" if device.total % GIB == 0 else f"{_gib(device.total)} GiB"
    return f"{device.name}, {size}" if device.name else size


def _gib(size: int) -> str:
    return f"{size / GIB:.2f}"
