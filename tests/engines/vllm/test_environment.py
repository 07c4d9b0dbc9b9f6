from __future__ import annotations

from typing import Any

import pytest

from moorage.engines.vllm.environment import ascend_flags, variables
from moorage.engines.vllm.launch_facts import is_310p
from moorage.placement.placement import Links
from tests.engines.vllm.requests import LINKS, RAY, a_request, line

CACHE = {"extended_kv_cache": {"ram": "1GiB"}}


def environment(*words: str, **changes: Any) -> dict[str, str]:
    return {item.name: item.value for item in variables(a_request(*words, **changes))}


@pytest.mark.parametrize("policy", ["fitted", "baseline"])
def test_a_server_is_silent_under_every_policy(policy: str) -> None:
    assert set(environment(placement={"policy": policy})) == {
        "VLLM_NO_USAGE_STATS",
        "HF_HUB_OFFLINE",
        "OMP_NUM_THREADS",
        "SAFETENSORS_FAST_GPU",
        "RUNAI_STREAMER_MEMORY_LIMIT",
        "RUNAI_STREAMER_LOG_TO_STDERR",
        "RUNAI_STREAMER_LOG_LEVEL",
    }


def test_what_the_user_sets_is_not_derived() -> None:
    assert "OMP_NUM_THREADS" not in environment(env=("OMP_NUM_THREADS",))


@pytest.mark.parametrize(("policy", "derived"), [("fitted", False), ("baseline", True)])
def test_only_the_baseline_overwrites_what_the_user_sets_and_no_default_does(
    policy: str, derived: bool
) -> None:
    given = {"OMP_NUM_THREADS", "VLLM_HOST_IP", "LMCACHE_MAX_LOCAL_CPU_SIZE"}
    made = environment(
        "-tp=8", counts=(4, 4), env=tuple(given), placement={"policy": policy}, **CACHE
    )
    assert given & made.keys() == (given - {"OMP_NUM_THREADS"} if derived else set())


@pytest.mark.parametrize("policy", ["fitted", "baseline"])
def test_the_processes_of_an_extended_cache_hash_alike(policy: str) -> None:
    assert environment(**CACHE, placement={"policy": policy})["PYTHONHASHSEED"] == "0"
    assert "PYTHONHASHSEED" not in environment()
    assert "PYTHONHASHSEED" not in environment(**CACHE, kind="cann")
    assert environment(**CACHE, env=("PYTHONHASHSEED",)).get("PYTHONHASHSEED") is None


def test_compiled_kernels_are_kept_where_there_is_a_place() -> None:
    assert environment(caches="/home/cache")["VLLM_CACHE_ROOT"] == "/cache/vllm"
    assert "VLLM_CACHE_ROOT" not in environment()


@pytest.mark.parametrize(
    ("words", "counts", "links", "ports"),
    [
        ([], (4, 4), RAY, {"VLLM_PORT": "40003", "RAY_LOG_TO_STDERR": "0"}),
        (["-dp=2"], (4, 4), LINKS, {"VLLM_PORT": "40003", "VLLM_DP_MASTER_PORT": "40004"}),
        (["-tp=2", "-dp=4"], (4, 4), LINKS, {"VLLM_DP_MASTER_PORT": "40004"}),
        (["-tp=8"], (4, 4), LINKS, {}),
        (["-tp=8"], (4, 4, 4, 4), LINKS, {"VLLM_DP_MASTER_PORT": "40004"}),
    ],
)
def test_each_way_of_joining_hosts_has_its_ports(
    words: list[str], counts: tuple[int, ...], links: Links, ports: dict[str, str]
) -> None:
    made = environment(*words, counts=counts, seat={"links": links})
    names = ("VLLM_PORT", "VLLM_DP_MASTER_PORT", "RAY_LOG_TO_STDERR")
    assert {name: made[name] for name in names if name in made} == ports


@pytest.mark.parametrize(
    ("words", "strategy"),
    [(["-tp=8", "-dp=2"], "span"), (["-tp=4", "-dp=4"], None), (["-tp=16"], None)],
)
def test_ray_is_told_that_data_parallel_ranks_span_hosts(
    words: list[str], strategy: str | None
) -> None:
    made = environment(*words, counts=(4, 4, 4, 4), seat={"links": RAY})
    assert made.get("VLLM_RAY_DP_PACK_STRATEGY") == strategy


@pytest.mark.parametrize(
    ("kind", "given", "names"),
    [
        ("cuda", (), {"NCCL_SOCKET_IFNAME": "=eth0", "GLOO_SOCKET_IFNAME": "eth0"}),
        ("cuda", ("NCCL_SOCKET_IFNAME",), {}),
        (
            "cann",
            ("NCCL_SOCKET_IFNAME",),
            {
                "HCCL_SOCKET_IFNAME": "=eth0",
                "GLOO_SOCKET_IFNAME": "eth0",
                "TP_SOCKET_IFNAME": "eth0",
            },
        ),
        ("cann", ("HCCL_SOCKET_IFNAME",), {}),
    ],
)
def test_collectives_take_the_interface_between_the_hosts(
    kind: str, given: tuple[str, ...], names: dict[str, str]
) -> None:
    made = environment("-tp=8", kind=kind, counts=(4, 4), env=given)
    assert {name: value for name, value in made.items() if name.endswith("IFNAME")} == names


def test_a_host_says_its_own_address() -> None:
    made = environment("-tp=8", counts=(4, 4), position=1, kind="cann")
    assert (made["VLLM_HOST_IP"], made["HCCL_IF_IP"]) == ("10.0.0.2", "10.0.0.2")


def test_310p_has_no_graphs_no_bfloat16_and_no_vector_communication() -> None:
    chip: dict[str, Any] = {"kind": "cann", "family": "Ascend310P3"}
    assert line(ascend_flags(a_request(**chip))) == "--enforce-eager --dtype float16"
    assert "HCCL_OP_EXPANSION_MODE" not in environment(**chip)
    assert environment(kind="cann")["HCCL_OP_EXPANSION_MODE"] == "AIV"
    assert ascend_flags(a_request(kind="cann")) == ()


@pytest.mark.parametrize(
    ("families", "answer"),
    [
        (("Ascend310P3", "ascend310p1"), True),
        (("Ascend310P3", "Ascend910B3"), False),
        (("Ascend310B1",), False),
        ((), False),
    ],
)
def test_only_where_all_are_310p(families: tuple[str, ...], answer: bool) -> None:
    assert is_310p(families) is answer
