"""Whom a host copies a model from."""

from __future__ import annotations

from moorage.inventory.claims import Claim, Resource
from moorage.inventory.snapshot import FleetSnapshot, HostSnapshot
from moorage.models.source import ModelFile, ResolvedModel, WeightSummary
from moorage.placement.lending import lender_for, ports_for_lending

NAMED = "hf://acme/tiny@abc"


def model(**file: object) -> ResolvedModel:
    return ResolvedModel(
        source="hf://acme/tiny",
        revision="abc",
        path="",
        staged=False,
        files=(ModelFile.model_validate({"name": "a", "size": 1, "sha256": "1"} | file),),
        config={},
        config_origin="config.json",
        weights=WeightSummary(family="safetensors", bytes=1),
    )


def host(name: str, *, has: bool = True, **fields: object) -> HostSnapshot:
    facts = {"name": name, "models": [NAMED] if has else [], "shares_models": True, **fields}
    return HostSnapshot.model_validate(facts)


def lender(*others: HostSnapshot, wanted: ResolvedModel | None = None, has: bool = False) -> str:
    target = host("target", has=has)
    found = lender_for(target, wanted or model(), FleetSnapshot(hosts=(*others, target)))
    return found.name if found else ""


def test_a_host_that_has_it_lends_it() -> None:
    assert lender(host("a", has=False), host("b")) == "b"


def test_nobody_lends_what_nobody_may_copy() -> None:
    assert lender(host("a", has=False)) == ""
    assert lender(host("a", shares_models=False)) == ""
    assert lender(host("a", unreachable="it is off")) == ""
    assert lender(host("a"), has=True) == ""
    assert lender(host("a"), wanted=model(sha256="")) == ""


def test_those_who_want_it_are_spread_over_those_who_have_it() -> None:
    having = (host("a"), host("b"))
    wanting = tuple(host(f"w{number}", has=False) for number in range(4))
    fleet = FleetSnapshot(hosts=(*having, *wanting))
    found = [lender_for(one, model(), fleet) for one in wanting]
    assert [one.name for one in found if one] == ["a", "b", "a", "b"]


def test_a_host_of_the_same_site_lends_first() -> None:
    near, far = host("near", labels={"site": "b"}), host("far", labels={"site": "a"})
    for wanting, lenders, expected in (
        (host("w", has=False, labels={"site": "b"}), (far, near), near),
        (host("w", has=False, labels={"site": "b"}), (far,), far),
        (host("w", has=False), (far, host("any")), host("any")),
    ):
        assert lender_for(wanting, model(), FleetSnapshot(hosts=(*lenders, wanting))) == expected


def test_ports_that_are_taken_are_left_alone() -> None:
    claim = Claim(host="a", resource=Resource.PORT, index=103, amount=1)
    lending = host("a", port_range=(100, 104), ports_in_use=(104,), claims=(claim,))
    assert ports_for_lending(lending) == (102, 101, 100)
