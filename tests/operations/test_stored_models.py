"""What may be pruned: nothing that is used, and what was used longest ago first."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.inventory.model_store import folder_name
from moorage.operations.stored_models import (
    Need,
    Stored,
    shared_needs,
    sharing_hosts,
    to_prune,
    with_shared_users,
)

DAY = 86_400.0
NOW = 100 * DAY
HERE = "a".__eq__


def stored(name: str, age: float, **fields: object) -> Stored:
    values = {
        "host": "a",
        "path": f"models/{name}/abc",
        "source": f"hf://acme/{name}",
        "revision": "abc",
        "bytes": 10,
        "used": NOW - age * DAY,
        "state": "complete",
    }
    return Stored.model_validate(values | fields)


ALL = (
    stored("old", 40),
    stored("older", 50, used_by=("tiny.v1",)),
    stored("new", 1),
    stored("middle", 20, host="b"),
)


@pytest.mark.parametrize(
    ("keep", "older_than", "going"),
    [
        (None, 30 * DAY, ["old"]),
        (None, 10 * DAY, ["old", "middle"]),
        (30, None, []),
        (20, None, ["old"]),
        (10, None, ["old", "new"]),
        (0, None, ["old", "middle", "new"]),
        (20, 10 * DAY, ["old", "middle"]),
    ],
)
def test_the_least_recently_used_go_first(
    keep: int | None, older_than: float | None, going: list[str]
) -> None:
    found = to_prune(ALL, keep=keep, older_than=older_than, now=NOW)
    assert [one.source.removeprefix("hf://acme/") for one in found] == going


def test_a_directory_that_moorage_did_not_make_stays() -> None:
    mine = stored("mine", 400, state="unknown")
    assert to_prune([mine], keep=0, older_than=DAY, now=NOW) == ()


def test_what_an_interrupted_prune_left_goes() -> None:
    left = stored("left", 0, state="going", path="models/left/abc.going")
    assert to_prune([left], keep=1000, older_than=None, now=NOW) == (left,)


def need(**fields: object) -> Need:
    values = {"release": "tiny.v1", "folder": folder_name("hf://acme/old"), "revision": "abc"}
    return Need.model_validate(values | fields)


@pytest.mark.parametrize(
    ("wanted", "concerned"),
    [
        (need(), True),
        (need(revision=""), True),
        (need(revision="other"), False),
        (need(folder="acme--other"), False),
        (need(hosts={"a"}), True),
        (need(hosts={"b"}), False),
    ],
)
def test_a_release_needs_its_revision_on_its_hosts(wanted: Need, concerned: bool) -> None:
    here = stored("old", 1, path="models/acme--old/abc")
    assert wanted.concerns(here, HERE) is concerned
    partial = stored("old", 1, path="models/acme--old/abc.partial", state="partial")
    assert wanted.concerns(partial, HERE) is concerned


@pytest.mark.parametrize(
    ("folder", "concerned"),
    [("acme--old", True), ("acme--old--0a1b2c3d", True), ("acme--older", False)],
)
def test_a_release_that_has_not_chosen_its_files_needs_all_of_its_source(
    folder: str, concerned: bool
) -> None:
    here = stored("old", 1, path=f"models/{folder}/abc")
    assert need(revision="", any_files=True).concerns(here, HERE) is concerned
    assert need(revision="").concerns(here, HERE) is (folder == "acme--old")


def test_hosts_that_share_a_store_need_it_together() -> None:
    here = stored("old", 1, path="models/acme--old/abc")
    assert need(hosts={"b", "c"}).concerns(here, {"a", "b"}.__contains__)


PARTIAL = "models/acme--old/abc.0123456789ab.partial"


@pytest.mark.parametrize(
    ("theirs", "silent", "shared"),
    [
        ({"age": 1}, (), True),
        ({"age": 2}, (), False),
        ({"age": 1, "path": "models/acme--other/abc"}, (), False),
        ({"age": 2}, ("b",), True),
    ],
    ids=["one directory", "a copy", "another model", "a host that is away"],
)
def test_what_another_host_of_the_store_needs_is_used(
    theirs: dict[str, Any], silent: tuple[str, ...], shared: bool
) -> None:
    here = stored("old", 1, path="models/acme--old/abc")
    there = stored("old", **{"path": "models/acme--old/abc", **theirs}, host="b", used_by=("x",))
    needed = [need(release="x", hosts={"b"})]
    listed = (here,) if silent else (here, there)
    assert with_shared_users(listed, needed, silent)[0].used_by == (("x",) if shared else ())
    sharing = sharing_hosts([here], listed).union(silent)
    assert any(one.concerns(here, HERE) for one in shared_needs(needed, "a", sharing)) is shared


def test_a_download_into_a_shared_store_is_used_although_it_grows() -> None:
    fields = {"path": PARTIAL, "state": "partial"}
    loading = stored("old", 0, **fields, host="b", used_by=("a download",))
    found = with_shared_users([stored("old", 1, **fields), loading], ())
    assert [one.used_by for one in found] == [("a download",)] * 2
