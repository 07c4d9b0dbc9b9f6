"""Runs placement cases by the way of a deploy: python -m tests.conformance.placement FILE.

A case becomes a spec with `policy: baseline`, a profile and a fleet snapshot; `propose` answers, as
it does for the step `place`. Prints each difference with the id of its case and ends with the line
`N passed, N failed`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moorage.common.failures import Failure
from moorage.engines.registry import ENGINES
from moorage.inventory.claims import Claim, Resource
from moorage.inventory.snapshot import FleetSnapshot
from moorage.placement.fit import misfits
from moorage.placement.placement import BaselineCandidate, HostShare, Placement
from moorage.placement.propose import NoFit, propose
from tests.conformance.placement_world import a_fleet, a_subject, host_names

Case = Mapping[str, Any]
Difference = tuple[str, Any, Any]


@dataclass(frozen=True)
class Answer:
    """What a deploy gets: a placement, with seats or without, or why the request is refused."""

    fleet: FleetSnapshot
    placement: Placement | None = None
    refusal: str | None = None


def cases(file: Path) -> list[dict[str, Any]]:
    loaded: dict[str, list[dict[str, Any]]] = json.loads(file.read_text())
    return loaded["cases"]


def answer(case: Case) -> Answer:
    """The proposal for a case."""
    fleet, running = a_fleet(case)
    try:
        return Answer(fleet, propose(a_subject(case), fleet, ENGINES, running))
    except NoFit as failure:
        return Answer(fleet, failure.placement)
    except Failure as failure:
        return Answer(fleet, refusal=failure.named.get("class", failure.detail))


def differences(case: Case) -> list[Difference]:
    try:
        return list(_compare(case, answer(case)))
    except Exception as error:
        return [("exception", "none", repr(error))]


def main(file: Path) -> int:
    passed = failed = 0
    for case in cases(file):
        found = differences(case)
        passed, failed = passed + (not found), failed + bool(found)
        for field, expected, got in found:
            print(f"{case['id']} {field}: expected {expected}, got {got}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def _compare(case: Case, got: Answer) -> Iterator[Difference]:
    expected = case["expected"]
    error = expected["error"]["class"] if expected.get("error") else None
    if error != got.refusal:
        yield "error", error, got.refusal
    workers = {host: worker for worker, host in host_names(case).items()}
    considered = got.placement.considered if got.placement else None
    claim = case["model"].get("vram_claim_bytes")
    if considered and claim is not None and claim != considered.needed:
        yield "vram_claim_bytes", claim, considered.needed
    candidates = considered.candidates if considered else ()
    want = [_stated(item) for item in expected.get("candidates") or ()]
    have = [_written(item, workers) for item in candidates]
    yield from (("candidate", item, "none such") for item in want if item not in have)
    yield from (("candidate", "none such", item) for item in have if item not in want)
    if len(want) != len(have):
        yield "candidates", len(want), len(have)
    wanted, best = expected.get("chosen"), chosen(got)
    if wanted is not None and (best is None or have[best] != want[wanted]):
        yield "chosen", want[wanted], None if best is None else have[best]


def chosen(got: Answer) -> int | None:
    """The candidate that the seats hold.

    The peer does not look at what our gate looks at, such as RAM by ratio: a best candidate that
    the gate refuses is still the rules' choice, and only another is seated.
    """
    if got.placement is None or got.placement.considered is None:
        return None
    considered, seats = got.placement.considered, got.placement.seats
    if not considered.candidates:
        return None
    best = considered.scores.index(max(considered.scores))
    taken = [(s.host, s.accelerator_type, s.accelerators) for s in seats if not s.replica]
    places = [
        [(share.host, item.accelerator_type, share.accelerators) for share in item.shares]
        for item in considered.candidates
    ]
    if not taken or _is_refused(considered.candidates[best], got.fleet):
        return best
    return places.index(taken)


def _is_refused(candidate: BaselineCandidate, fleet: FleetSnapshot) -> bool:
    return any(
        misfits(fleet.host(share.host), _claims(share), overcommit=candidate.overcommit)
        for share in candidate.shares
    )


def _claims(share: HostShare) -> Iterator[Claim]:
    for index, amount in zip(share.accelerators, share.accelerator_bytes, strict=True):
        yield Claim(host=share.host, resource=Resource.ACCELERATOR, index=index, amount=amount)
    yield Claim(host=share.host, resource=Resource.RAM, amount=share.ram_bytes)


def _stated(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "gpu_type": item["gpu_type"],
        "overcommit": bool(item.get("overcommit")),
        "shares": [_stated_share(share) for share in (item, *(item.get("followers") or ()))],
    }


def _stated_share(share: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "worker": share["worker"],
        "gpus": sorted(share["gpus"]),
        "vram_by_gpu": {int(index): taken for index, taken in share["vram_by_gpu"].items()},
        "ram": share.get("ram") or 0,
    }


def _written(item: BaselineCandidate, workers: Mapping[str, str]) -> dict[str, Any]:
    return {
        "gpu_type": item.accelerator_type,
        "overcommit": item.overcommit,
        "shares": [_written_share(share, workers) for share in item.shares],
    }


def _written_share(share: HostShare, workers: Mapping[str, str]) -> dict[str, Any]:
    return {
        "worker": workers[share.host],
        "gpus": list(share.accelerators),
        "vram_by_gpu": dict(zip(share.accelerators, share.accelerator_bytes, strict=True)),
        "ram": share.ram_bytes,
    }


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
