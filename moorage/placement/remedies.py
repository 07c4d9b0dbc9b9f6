"""What would make a model fit: each way is tried on the very fleet before it is named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from moorage.inventory.snapshot import FleetSnapshot
from moorage.memory import MemoryModel
from moorage.memory.spec_options import wanted_concurrency
from moorage.placement.better_hosts import emptied_or_extended, larger
from moorage.placement.demand import Demand, Wish
from moorage.placement.request import Request
from moorage.placement.trial import Trial
from moorage.placement.variants import other_checkpoints, other_options
from moorage.placement.view import look_at
from moorage.spec import EngineName
from moorage.spec.arguments import has_argument, user_tokens

CONTEXTS = (131_072, 65_536, 32_768, 16_384, 8192, 4096, 2048)
MOST_RELEASES = 16
"""Releases that are tried one by one as if they were retired."""


def remedies(
    request: Request, fleet: FleetSnapshot, exact: MemoryModel | None = None
) -> tuple[str, ...]:
    """Changes that would let the model be placed, the smallest first; empty when none is known.

    Args:
        request: What fits nowhere.
        fleet: The fleet.
        exact: Its memory model, where there is one.
    """
    trial = Trial(request, exact, fleet, [look_at(host) for host in fleet.hosts])
    tries = (
        _smaller_cache,
        _options,
        _more_accelerators,
        _without_a_release,
        _checkpoint,
        emptied_or_extended,
        larger,
    )
    return tuple(way for attempt in tries if (way := next(attempt(trial), "")))


def _smaller_cache(trial: Trial) -> Iterator[str]:
    for words, wish in _smaller_wishes(trial.request):
        smaller = Demand(trial.request.demand.memory, wish)
        if trial.seats(replace(trial.request, demand=smaller)):
            yield f"Set {words}: with it the model fits."


def _smaller_wishes(request: Request) -> Iterator[tuple[str, Wish]]:
    """Fewer requests at once, a shorter context, and both."""
    wish, spec, one = request.demand.wish, request.spec, "`concurrency: 1`"
    if wish.concurrency > 1:
        yield one, replace(wish, concurrency=1)
    by_argument = has_argument(user_tokens(spec.engine.args), "--max-model-len")
    for tokens in CONTEXTS:
        if tokens >= wish.least_context:
            continue
        length = f"`--max-model-len {tokens}` in `engine.args`"
        words = length if by_argument else f"`context: {tokens}`"
        at_once = wanted_concurrency(spec, tokens)
        shorter = replace(wish, context=tokens, stated=True, concurrency=at_once)
        yield words, shorter
        if at_once > 1:
            yield f"{words} and {one}", replace(shorter, concurrency=1)


def _options(trial: Trial) -> Iterator[str]:
    if trial.exact is None or trial.request.engine.name != EngineName.VLLM:
        return
    for arguments, request in other_options(trial.request, trial.exact):
        if trial.seats(request):
            yield f"Add `{arguments}` to `engine.args`: with it the model fits."


def _more_accelerators(trial: Trial) -> Iterator[str]:
    """As many as it takes, where the user wants fewer or lists them."""
    spec = trial.request.spec
    if spec.placement.accelerators == "auto" or trial.request.stated:
        return
    free = spec.placement.model_copy(update={"accelerators": "auto"})
    request = replace(trial.request, spec=spec.model_copy(update={"placement": free}))
    taken: Counter[int] = Counter()
    for seat in trial.seats(request):
        taken[seat.replica] += len(seat.accelerators)
    counts = set(taken.values())
    if len(counts) == 1 and counts != {0}:
        yield f"Set `placement.accelerators: {counts.pop()}`: with it the model fits."


def _without_a_release(trial: Trial) -> Iterator[str]:
    hosts = trial.fleet.hosts
    names = {claim.release: None for host in hosts for claim in host.claims if claim.release}
    for name in list(names)[:MOST_RELEASES]:
        views = [look_at(host) for host in trial.fleet.without(name).hosts]
        if trial.seats(views=views):
            yield f"Retire {name}: in its place the model fits."


def _checkpoint(trial: Trial) -> Iterator[str]:
    for name, request in other_checkpoints(trial.request):
        if seats := trial.seats(request):
            where, count = seats[0].host, len(seats[0].accelerators)
            on = f" on {count} accelerators of {where}" if count else f" on {where}"
            yield f"A checkpoint of it in {name} would fit{on}, as far as can be estimated."
