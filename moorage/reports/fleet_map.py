"""The memory of all hosts as bars: the claims on each accelerator and on RAM, by release."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from moorage.common.units import human_bytes
from moorage.inventory.claims import Capacity, Claim, Resource
from moorage.operations.metrics.present import MEMORY, Place, capacity_bytes
from moorage.reports.html import Element, element, table
from moorage.reports.svg import Part, stacked_bar

COLUMNS = ("host", "", "claimed", "", "by")
COLOURS = 8
"""Number of classes in the style sheet, from `m0`; further models reuse them."""

UNKNOWN = "bad"
"""Class for the claims of a release that is not in `releases`."""


def fleet_map(
    releases: Mapping[str, str],
    claims: Sequence[Claim],
    capacities: Mapping[str, Collection[Capacity]],
    unseen: Collection[str],
) -> Element:
    """A table with a bar for each accelerator and each host's RAM.

    Args:
        releases: Models by release.
    """
    models = sorted(set(releases.values()))
    colours = {one: f"m{models.index(model) % COLOURS}" for one, model in releases.items()}
    in_memory = [one for one in claims if one.resource in MEMORY]
    whole = capacity_bytes(capacities)
    rows = list(_rows(whole, in_memory, colours, unseen))
    return table(COLUMNS, rows) if rows else element("p", "Nothing was ever claimed.")


def _rows(
    whole: Mapping[Place, int],
    claims: Sequence[Claim],
    colours: Mapping[str, str],
    unseen: Collection[str],
) -> Iterator[tuple[Element | str, ...]]:
    for place in sorted({*whole, *map(_place, claims)}):
        if place[1] in MEMORY:
            held = [one for one in claims if _place(one) == place]
            taken = sum(one.amount for one in held)
            total = whole.get(place, taken)
            bar = stacked_bar([_part(one, colours) for one in held], total)
            figures = f"{human_bytes(taken)} of {human_bytes(total)}"
            yield *_names(place, unseen), bar, figures, ", ".join(map(_label, held))


def _place(claim: Claim) -> Place:
    return claim.host, claim.resource, claim.index


def _names(place: Place, unseen: Collection[str]) -> tuple[str, str]:
    host, resource, index = place
    named = f"{resource} {index}" if resource == Resource.ACCELERATOR else "RAM"
    return f"{host} (does not answer)" if host in unseen else host, named


def _part(claim: Claim, colours: Mapping[str, str]) -> Part:
    return Part(claim.amount, _label(claim), colours.get(claim.release, UNKNOWN))


def _label(claim: Claim) -> str:
    return f"{claim.release}: {human_bytes(claim.amount)}"
