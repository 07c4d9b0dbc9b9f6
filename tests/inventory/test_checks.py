"""What is wrong with a host is named, with what mends it."""

from __future__ import annotations

import pytest

from moorage.common.units import GIB
from moorage.inventory.checks import (
    Check,
    judge_accelerators,
    judge_avoided,
    judge_bind,
    judge_clock,
    judge_disks,
    judge_docker,
    judge_names,
    judge_neighbours,
    judge_toolkit,
    seconds_ahead,
)
from moorage.inventory.survey.facts import HostFacts
from tests.builders import an_accelerator

NOON = 1795262400.0
"""2026-11-21T12:00:00Z"""

CUDA = (an_accelerator(0), an_accelerator(1))


def facts(**known: object) -> HostFacts:
    return HostFacts.model_validate({"cores": 1, "ram_total": GIB, "ram_free": GIB, **known})


@pytest.mark.parametrize(
    ("expected", "ahead"),
    [
        ("2026-11-21T12:00:00.389062502Z", 0.0),
        ("2026-11-21T13:00:01.5+01:00", 0.0),
        ("2026-11-21T06:30:00-05:30", 0.0),
        ("2026-11-21T12:01:42Z", 100.0),
        ("2026-11-21T11:58:19Z", -100.0),
        ("0001-01-01", None),
        ("None", None),
    ],
)
def test_a_clock_is_compared_with_the_time_of_the_question(
    expected: str, ahead: float | None
) -> None:
    assert seconds_ahead(expected, NOON, NOON + 2) == ahead


@pytest.mark.parametrize(
    ("ahead", "found"),
    [
        (0.0, "within 1.00 s of this machine's"),
        (-29.0, "within 29.0 s of this machine's"),
        (31.0, "31.0 s ahead of this machine's"),
        (-3600.0, "60 min 00 s behind this machine's"),
    ],
)
def test_a_clock_may_be_half_a_minute_off(ahead: float, found: str) -> None:
    check = judge_clock(ahead)
    assert check.found == found
    assert check.broken == (abs(ahead) > 30)
    assert ("timedatectl" in check.fix) == check.broken


@pytest.mark.parametrize(("api", "is_old"), [("1.41", False), ("1.52", False), ("1.9", True)])
def test_docker_may_be_too_old(api: str, is_old: bool) -> None:
    check = judge_docker("X", api)
    assert check.broken == is_old
    assert f"X (API {api})" in check.found


@pytest.mark.parametrize(
    ("known", "found", "fix"),
    [
        ({}, "none", ""),
        ({"accelerators": CUDA, "vendors": {"NVIDIA": 2}}, "2 x NVIDIA H100 80GB HBM3", ""),
        ({"vendors": {"NVIDIA": 2}}, "without NVIDIA's driver", "Install NVIDIA's driver"),
        (
            {
                "vendors": {"NVIDIA": 2},
                "nvidia_driver": True,
                "troubles": ("could not select device driver",),
            },
            "without the toolkit: could not select device driver",
            "nvidia-ctk runtime configure",
        ),
    ],
)
def test_accelerators_need_a_driver_and_a_runtime(
    known: dict[str, object], found: str, fix: str
) -> None:
    (check,) = judge_accelerators(facts(**known))
    assert found in check.found
    assert check.broken == bool(fix)
    assert fix in check.fix


def test_every_trouble_with_an_accelerator_is_a_finding() -> None:
    checks = judge_accelerators(facts(accelerators=CUDA, troubles=("GPU 2 is lost", "GPU 3 too")))
    assert [check.broken for check in checks] == [False, True, True]


def test_accelerators_that_are_written_down_are_not_doubted() -> None:
    (check,) = judge_accelerators(facts(vendors={"NVIDIA": 2}), detect=False)
    assert not check.broken


@pytest.mark.parametrize(
    ("avoided", "found"), [([], []), ([1, 0], []), ([0, 8, 7], ["7, 8: the host shows no such"])]
)
def test_avoided_accelerators_that_a_host_lacks_are_named(
    avoided: list[int], found: list[str]
) -> None:
    checks = judge_avoided(avoided, [0, 1])
    assert [check.state for check in checks] == ["absent"] * len(found)
    assert all(text in check.found for check, text in zip(checks, found, strict=True))


@pytest.mark.parametrize(
    ("runtimes", "accelerators", "number"),
    [(("runc",), CUDA, 1), (("runc", "nvidia"), CUDA, 0), (("runc",), (), 0)],
)
def test_docker_here_may_lack_the_toolkit(
    runtimes: tuple[str, ...], accelerators: tuple[object, ...], number: int
) -> None:
    assert len(judge_toolkit(facts(accelerators=accelerators), runtimes)) == number


@pytest.mark.parametrize(
    ("images", "models", "states"),
    [
        (None, None, []),
        (50 * GIB, None, ["ok"]),
        (20 * GIB, 20 * GIB, ["absent", "ok"]),
        (9 * GIB, 9 * GIB, ["broken", "broken"]),
    ],
)
def test_disks_need_room(images: int | None, models: int | None, states: list[str]) -> None:
    assert [check.state for check in judge_disks(images, models)] == states


def test_each_disk_has_its_own_remedy() -> None:
    of_images, of_models = judge_disks(0, 0)
    assert "`docker image prune`" in of_images.fix
    assert "`moorage models prune`" in of_models.fix


@pytest.mark.parametrize(
    ("check", "found"),
    [
        (judge_bind("10.0.0.1", 40063, ""), "10.0.0.1:40063 can be reached from here"),
        (judge_bind("10.0.0.1", 40063, "timed out"), "cannot be reached from here: timed out"),
        (judge_neighbours({"b": "", "c": ""}), "reaches b, c"),
        (judge_neighbours({"b": "", "c": "timed out"}), "does not reach c: timed out"),
        (judge_neighbours({str(at): "" for at in range(7)}), "reaches 0, 1, 2, 3, 4 and 2 more"),
        (judge_neighbours({str(at): "no" for at in range(7)}), "; and 2 more"),
    ],
)
def test_ways_are_told_with_their_ends(check: Check, found: str) -> None:
    assert found in check.found
    assert check.broken == bool(check.fix)


def test_a_machine_with_two_names_is_told_at_each_of_them() -> None:
    found = judge_names({"a": "id-1", "b": "id-2", "c": "id-1", "d": "", "e": ""})
    assert {name: check.found for name, check in found.items()} == {
        "a": "the same Docker as c, so its memory would be claimed twice",
        "c": "the same Docker as a, so its memory would be claimed twice",
    }
    assert all(check.broken for check in found.values())
