from __future__ import annotations

import pytest

from moorage.engines.labels import LABEL_REPLICA
from moorage.engines.launch import ContainerSpec, split_off, start_groups
from tests.builders import a_container, a_plan


def container(replica: int, host: str, *devices: str, kind: str = "cuda") -> ContainerSpec:
    labels = {**a_container().labels, LABEL_REPLICA: str(replica)}
    name = f"{replica}@{host}"
    return a_container(name=name, host=host, devices=devices, accelerator_type=kind, labels=labels)


def turns(*containers: ContainerSpec) -> list[list[str]]:
    plan = a_plan(*containers)
    parts = start_groups(plan)
    assert {part.release for part in parts} == {"tiny.v1"}
    return [[one.name for one in part.containers] for part in parts]


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        pytest.param(
            [container(0, "a"), container(1, "a")], [["0@a", "1@a"]], id="no accelerators"
        ),
        pytest.param(
            [container(0, "a", "0"), container(1, "a", "1"), container(2, "b", "0")],
            [["0@a", "1@a", "2@b"]],
            id="nothing shared",
        ),
        pytest.param(
            [container(0, "a", "0"), container(1, "a", "0"), container(2, "a", "0")],
            [["0@a"], ["1@a"], ["2@a"]],
            id="one accelerator for all",
        ),
        pytest.param(
            [container(0, "a", "0"), container(1, "a", "0"), container(2, "a", "1")],
            [["0@a", "2@a"], ["1@a"]],
            id="who shares nothing waits for nobody",
        ),
        pytest.param(
            [container(0, "a", "0", "1"), container(1, "a", "1", "2"), container(2, "a", "2")],
            [["0@a"], ["1@a"], ["2@a"]],
            id="a chain",
        ),
        pytest.param(
            [container(0, "a", "0"), container(1, "a", "0", kind="rocm")],
            [["0@a", "1@a"]],
            id="the same number of another kind",
        ),
        pytest.param(
            [container(0, "a", "0"), container(0, "b", "0"), container(1, "b", "0")],
            [["0@a", "0@b"], ["1@b"]],
            id="a leader starts with its followers",
        ),
        pytest.param(
            [container(0, "a", "0"), container(1, "b", "0"), container(0, "b", "0")],
            [["0@a", "0@b"], ["1@b"]],
            id="leaders listed first",
        ),
    ],
)
def test_replicas_that_share_an_accelerator_start_one_after_the_other(
    containers: list[ContainerSpec], expected: list[list[str]]
) -> None:
    assert turns(*containers) == expected


@pytest.mark.parametrize(
    ("replicas", "share", "first"),
    [(1, 0.25, 1), (4, 0.25, 1), (5, 0.25, 2), (10, 0.3, 3), (3, 0.01, 1), (3, 1, 3)],
)
def test_a_share_of_the_replicas_is_rounded_up_and_keeps_replicas_whole(
    replicas: int, share: float, first: int
) -> None:
    containers = [container(number, host) for number in range(replicas) for host in ("a", "b")]
    plan = a_plan(*containers)
    one, rest = split_off(plan, share)
    assert (len(one.containers), len(rest.containers)) == (2 * first, 2 * (replicas - first))
    assert (*one.containers, *rest.containers) == plan.containers
