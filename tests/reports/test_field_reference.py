from __future__ import annotations

import pytest

from moorage.common.failures import Cause, Failure
from moorage.reports.field_reference import FILES, explain, models_in


@pytest.mark.parametrize(
    ("name", "path", "kind", "default"),
    [
        ("placement.ram", "placement.ram", "`auto` or integer, from 0 or text", "`auto`"),
        ("spec.placement.ram", "placement.ram", "`auto` or integer, from 0 or text", "`auto`"),
        ("fleet.hosts.ports", "fleet.hosts.ports", "text", "`40000-40063`"),
        ("hosts[12].ports", "fleet.hosts.ports", "text", "`40000-40063`"),
        ("name", "name", "text", "required"),
    ],
)
def test_a_field_is_told_by_its_path(name: str, path: str, kind: str, default: str) -> None:
    found = explain(name)
    assert (found.path, found.kind, found.default) == (path, kind, default)
    assert found.text
    assert not found.fields


@pytest.mark.parametrize("name", ["engine", "placement", "fleet", "fleet.hosts", "policy", "spec"])
def test_what_holds_others_lists_them(name: str) -> None:
    found = explain(name)
    assert found.fields
    assert all(one.text for one in found.fields.values())


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("plcement.ram", "placement.ram"),
        ("ram", "placement.ram"),
        ("fleet.host.ports", "fleet.hosts.ports"),
        ("hosts[0].bimd", "fleet.hosts.bind"),
        ("zzz", "moorage explain"),
    ],
)
def test_what_is_no_field_is_told_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(Failure) as caught:
        explain(name)
    assert caught.value.cause is Cause.BAD_SETTING
    assert near in (caught.value.suggestion or "")


def test_every_field_of_every_file_can_be_explained() -> None:
    for file, (_, model) in FILES.items():
        for place, part in models_in(model):
            for name in part.model_fields:
                assert explain(f"{file}.{place}.{name}".replace("..", ".")).kind
