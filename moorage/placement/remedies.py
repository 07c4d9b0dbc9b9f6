"""Finds changes that would make a model fit, by trying each on the fleet."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from moorage.common.refusal import Reason, Refusal
from moorage.common.units import GIB, human_bytes
from moorage.inventory.snapshot import Accelerator, FleetSnapshot
from moorage.memory.demand import MemoryModel
from moorage.memory.need import MemoryQuery, Need
from moorage.memory.stated_options import wanted_concurrency
from moorage.placement.candidates import MOST_ON_ONE_HOST, Candidate
from moorage.placement.demand import Demand, Split
from moorage.placement.explanation import Verdict
from moorage.placement.filters import DISK_MARGIN, filter_hosts
from moorage.placement.memory import Memory, MemoryRequest, exact_or_estimated
from moorage.placement.placement import Seat
from moorage.placement.request import Request
from moorage.placement.strategies import first_candidates
from moorage.placement.view import AcceleratorKind, HostView, view_of, views_of
from moorage.spec import Distributed, EngineName, ExtendedCacheSpec

OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--kv-cache-dtype fp8", {"kv_cache_dtype": "fp8"}),
    ("--max-num-seqs 64", {"max_seqs": 64}),
    ("--max-num-batched-tokens 2048", {"batched_tokens": 2048}),
    ("--enforce-eager", {"enforce_eager": True}),
)
"""Engine arguments that save memory, the least costly first, and the options that they set."""

CHECKPOINTS = (("FP8", 0.52), ("4 bits", 0.3))
"""Checkpoints in fewer bits, and the size of their weights and scales relative to 16 bits."""

FULL_WIDTH = ("bfloat16", "float16", "")
CONTEXTS = (131_072, 65_536, 32_768, 16_384, 8192, 4096, 2048)
MOST_RELEASES = 16
"""Most releases to try retiring, one by one."""

SIZES = (16, 24, 32, 40, 48, 80, 96, 141, 192, 288)
"""Memory of accelerators on the market, in GiB."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A request that fits nowhere on a fleet, and the means to try variants of it.

    Attributes:
        place: Places all replicas of a request on hosts; no seats = no fit.
    """

    request: Request
    fleet: FleetSnapshot
    views: Sequence[HostView]
    place: Callable[[Request, Sequence[HostView]], tuple[Seat, ...]]

    def seats(
        self, request: Request | None = None, views: Sequence[HostView] | None = None
    ) -> tuple[Seat, ...]:
        """The seats of all replicas, given another request or other hosts; none = no fit."""
        return self.place(request or self.request, self.views if views is None else views)

    def with_demand(
        self, memory: Memory | None = None, wanted: MemoryRequest | None = None
    ) -> Request:
        """The request with another memory model, or with another memory request."""
        demand = self.request.demand
        other = Demand(memory or demand.memory, wanted or demand.request, demand.versions)
        return replace(self.request, demand=other)


def remedies(trial: Trial) -> tuple[str, ...]:
    """Changes that would make the model fit, the smallest first; empty if none is known."""
    attempts = (
        _room_on_disks,
        _smaller_cache,
        _options,
        _more_accelerators,
        _derived_sizes,
        _several_hosts,
        _ray,
        _partial_offload,
        _without_a_release,
        _smaller_extended_cache,
        _checkpoint,
        _empty_or_extended_host,
        _larger_accelerators,
    )
    return tuple(remedy for attempt in attempts if (remedy := next(attempt(trial), "")))


def _room_on_disks(trial: Trial) -> Iterator[str]:
    needed = int(trial.request.subject.disk_bytes * DISK_MARGIN)
    hosts = [view.host for view in trial.views]
    full = {host.name for host in hosts if host.disk_free is not None and host.disk_free < needed}
    if not full:
        return
    hosts = [host.model_copy(update={"disk_free": None}) for host in hosts]
    if seats := trial.seats(views=views_of(hosts)):
        names = ", ".join(dict.fromkeys(seat.host for seat in seats if seat.host in full))
        yield (
            f"Make room in the store of {names} (`moorage models prune`), or set its `store` to a"
            " larger disk: then the model fits."
        )


def _smaller_cache(trial: Trial) -> Iterator[str]:
    for setting, smaller in _smaller_requests(trial.request):
        if trial.seats(trial.with_demand(wanted=smaller)):
            yield f"Set {setting}: with it the model fits."


def _smaller_requests(request: Request) -> Iterator[tuple[str, MemoryRequest]]:
    """Settings for fewer requests at once, a shorter context, and both."""
    wanted, spec, one = request.demand.request, request.spec, "`concurrency: 1`"
    if wanted.concurrency > 1:
        yield one, replace(wanted, concurrency=1)
    by_argument = spec.engine.arguments.has("--max-model-len")
    for tokens in CONTEXTS:
        if tokens >= wanted.least_context:
            continue
        length = f"`--max-model-len {tokens}` in `engine.args`"
        setting = length if by_argument else f"`context: {tokens}`"
        at_once = wanted_concurrency(spec, tokens, request.profile.encoder_tokens or 0)
        shorter = replace(wanted, context=tokens, stated=True, concurrency=at_once)
        yield setting, shorter
        if at_once > 1:
            yield f"{setting} and {one}", replace(shorter, concurrency=1)


def _partial_offload(trial: Trial) -> Iterator[str]:
    divided = trial.request.with_placement(partial_offload=True)
    if not trial.request.divisible_layers and divided.divisible_layers:
        for seat in trial.seats(divided)[:1]:
            layers = f"{seat.layers} of {divided.divisible_layers} layers fit"
            yield f"Set `placement.partial_offload: true`: {layers}, the others stay in RAM."


def _options(trial: Trial) -> Iterator[str]:
    """Try each argument alone, then all together."""
    request, exact = trial.request, trial.request.subject.memory
    if not isinstance(exact, MemoryModel) or request.engine.name != EngineName.VLLM:
        return
    together = " ".join(argument for argument, _ in OPTIONS)
    combined = {name: value for _, change in OPTIONS for name, value in change.items()}
    for arguments, change in (*OPTIONS, (together, combined)):
        memory = partial(exact_or_estimated, exact.with_options(**change).need, request.profile, 0)
        if trial.seats(trial.with_demand(memory)):
            yield f"Add `{arguments}` to `engine.args`: with it the model fits."


def _more_accelerators(trial: Trial) -> Iterator[str]:
    """Try as many accelerators as it takes, if the user requests a number or lists them."""
    request = trial.request
    if request.spec.placement.accelerators == "auto" or request.stated:
        return
    taken: Counter[int] = Counter()
    for seat in trial.seats(request.with_placement(accelerators="auto")):
        taken[seat.replica] += len(seat.accelerators)
    counts = set(taken.values())
    if len(counts) == 1 and counts != {0}:
        yield f"Set `placement.accelerators: {counts.pop()}`: with it the model fits."


def _derived_sizes(trial: Trial) -> Iterator[str]:
    """Try the parallel sizes that follow from the placement, if the user states others."""
    if trial.request.stated and trial.seats(replace(trial.request, stated=None)):
        yield "Leave the parallel sizes out of `engine.args`: without them the model fits."


def _several_hosts(trial: Trial) -> Iterator[str]:
    request = trial.request
    joined = request.with_placement(across_hosts=True)
    stated = request.spans_hosts or request.spec.placement.hosts != "auto"
    if not stated and joined.spans_hosts and trial.seats(joined):
        yield "Set `placement.across_hosts: true`: on several hosts the model fits."


def _ray(trial: Trial) -> Iterator[str]:
    """Try Ray, which also joins hosts that give unequal numbers of accelerators."""
    request = trial.request
    if not request.spans_hosts or request.joined_by == Distributed.RAY:
        return
    engine = request.spec.engine.model_copy(update={"distributed": Distributed.RAY})
    joined_by = request.engine.joined_by(request.spec.model_copy(update={"engine": engine}))
    if joined_by == Distributed.RAY and trial.seats(replace(request, joined_by=joined_by)):
        yield "Set `engine.distributed: ray`: with it the model fits."


def _without_a_release(trial: Trial) -> Iterator[str]:
    hosts = trial.fleet.hosts
    names = {claim.release: None for host in hosts for claim in host.claims if claim.release}
    for name in list(names)[:MOST_RELEASES]:
        if trial.seats(views=views_of(trial.fleet.without(name).hosts)):
            yield f"Retire {name}: in its place the model fits."


def _smaller_extended_cache(trial: Trial) -> Iterator[str]:
    cache = trial.request.spec.extended_kv_cache
    if cache is None:
        return
    for setting, smaller in _smaller_caches(cache):
        if trial.seats(trial.request.with_spec(extended_kv_cache=smaller)):
            yield f"Set `extended_kv_cache.{setting}`: with it the model fits."
    if trial.seats(trial.request.with_spec(extended_kv_cache=None)):
        yield "Leave out `extended_kv_cache`: without it the model fits."


def _smaller_caches(cache: ExtendedCacheSpec) -> Iterator[tuple[str, ExtendedCacheSpec]]:
    for part in (2, 4, 8):
        if cache.ram is None:
            ratio = cache.ratio / part
            yield f"ratio: {ratio!r}", cache.model_copy(update={"ratio": ratio})
        elif gib := cache.ram // part // GIB:
            yield f"ram: {gib}GiB", cache.model_copy(update={"ram": gib * GIB})


def _checkpoint(trial: Trial) -> Iterator[str]:
    profile = trial.request.profile
    if profile.quantization or profile.dtype not in FULL_WIDTH:
        return
    for name, share in CHECKPOINTS:
        memory = partial(_lighter, trial.request.demand.memory, share)
        if seats := trial.seats(trial.with_demand(memory)):
            where, count = seats[0].host, len(seats[0].accelerators)
            on = f" on {count} accelerators of {where}" if count else f" on {where}"
            yield f"A checkpoint of it in {name} would fit{on}, as far as can be estimated."


def _lighter(memory: Memory, share: float, query: MemoryQuery) -> Need | Refusal:
    need = memory(query)
    if isinstance(need, Refusal):
        return need
    terms = tuple(
        term.model_copy(update={"bytes": int(term.bytes * share), "exact": False})
        if term.name == "weights"
        else term
        for term in need.terms
    )
    return need.model_copy(update={"terms": terms})


def _empty_or_extended_host(trial: Trial) -> Iterator[str]:
    """Try the largest host of each kind with nothing else on it, then with more accelerators."""
    for kind, view in _largest(trial).items():
        there = len(view.groups[kind])
        items = view.host.accelerators
        empty = (one.model_copy(update={"memory_free": one.memory_total}) for one in items)
        if usage := _usage_on(trial, view, _bare(view, empty)):
            each, count, _ = usage
            yield f"{view.host.name} would do with nothing else on it: {each} on each of {count}."
            continue
        for number in _plentiful_counts(trial, view, kind):
            if usage := _usage_on(trial, view, _with(view, kind, number)):
                each, count, tokens = usage
                yield (
                    f"A host with {count} x {kind} would do: {each} on each for {tokens} tokens"
                    f" (the largest host has {there})."
                )
                break


def _larger_accelerators(trial: Trial) -> Iterator[str]:
    """Try larger accelerators on the largest host, unless the user lists accelerators."""
    largest = _largest(trial)
    if not largest or trial.request.listed_accelerators:
        return
    kind, view = max(largest.items(), key=lambda one: len(one[1].groups[one[0]]) * one[0].total)
    for total in (size * GIB for size in SIZES if size * GIB > kind.total):
        bought = kind._replace(name="", total=total)
        if usage := _usage_on(trial, view, _with(view, bought, len(view.groups[kind]))):
            each, count, _ = usage
            size = f"{human_bytes(total)} ({kind.type})"
            yield f"{count} x {size} on one host would do: {each} on each."
            return


def _largest(trial: Trial) -> dict[AcceleratorKind, HostView]:
    """For each kind that the engine can use and the user wants, the host with the most of it."""
    request, views = trial.request, trial.views
    types, wanted = request.engine.accelerator_types, request.spec.placement.accelerator_kinds
    kinds = dict.fromkeys(kind for view in views for kind in view.groups)
    usable = (kind for kind in kinds if kind.type in types and kind.is_one_of(wanted))
    return {kind: max(views, key=lambda view: len(view.groups.get(kind, ()))) for kind in usable}


def _plentiful_counts(trial: Trial, view: HostView, kind: AcceleratorKind) -> list[int]:
    """Accelerators that one replica, and all replicas, would take on a host with plenty."""
    if trial.request.listed_accelerators:
        return []
    plenty = _with(view, kind, MOST_ON_ONE_HOST)
    counts = {len(one.rooms[0]) for one in _candidates(trial.request, plenty) if one.kind}
    if seats := trial.seats(views=[plenty]):
        counts.add(_number(seats))
    return sorted(counts)


def _usage_on(trial: Trial, view: HostView, other: HostView) -> tuple[str, int, int] | None:
    """Bytes of each accelerator, accelerators and tokens used if `other` replaces a host.

    None = the replicas do not fit.
    """
    if not _candidates(trial.request, other):
        return None
    seats = trial.seats(views=[other if one is view else one for one in trial.views])
    on_it = [seat for seat in seats if seat.host == view.host.name and seat.accelerators]
    if not on_it:
        return None
    each = max(size for seat in on_it for size in seat.accelerator_bytes)
    return human_bytes(each), _number(on_it), min(seat.tokens for seat in on_it)


def _candidates(request: Request, view: HostView) -> list[Candidate]:
    """The candidates on one host by our own strategies, whatever the policy."""
    return first_candidates(request, filter_hosts(request, [view])[0])


def _number(seats: Sequence[Seat]) -> int:
    return len({index for seat in seats for index in seat.accelerators})


def _with(view: HostView, kind: AcceleratorKind, number: int) -> HostView:
    """The host with `number` accelerators of one kind instead of its own, and nothing on it.

    It keeps its driver: a driver too old for the engine's image stays too old.
    """
    there = view.host.first(kind.type)
    driver = {"driver": there.driver, "runtime_version": there.runtime_version} if there else {}
    sizes = {"memory_total": kind.total, "memory_free": kind.total}
    own = {"type": kind.type, "name": kind.name, "family": kind.family}
    one = Accelerator(index=0, **own, **sizes, **driver)
    return _bare(view, (one.model_copy(update={"index": index}) for index in range(number)))


def _bare(view: HostView, accelerators: Iterable[Accelerator]) -> HostView:
    empty = {"claims": (), "ports_in_use": (), "ram_free": view.host.ram_total}
    host = view.host.model_copy(update={**empty, "accelerators": tuple(accelerators)})
    return view_of(host, view.smallest)


def shortage(request: Request, views: Sequence[HostView], verdicts: Sequence[Verdict]) -> str:
    """One line with the parts of the memory on the nearest miss; empty if memory is not short."""
    # The policy `baseline` does not measure against one shape, so its refusals have no count.
    short = [one for one in verdicts if one.count and one.refusal == Reason.ACCELERATOR_MEMORY]
    nearest = min(short, key=lambda one: one.needed - one.available, default=None)
    if nearest is None:
        return ""
    split = request.stated_split or Split(tensor=nearest.count)
    (view,) = (view for view in views if view.host.name == nearest.host)
    for kind in view.groups:
        allocation = request.demand.least(kind, split)
        if not isinstance(allocation, Refusal) and allocation.bytes == nearest.needed:
            terms = (f"{term.name} {human_bytes(term.bytes)}" for term in allocation.need.terms)
            return (
                f"{human_bytes(allocation.bytes)} on each of {nearest.count} x {kind} for"
                f" {allocation.tokens} tokens: {', '.join(terms)}"
            )
    return ""
