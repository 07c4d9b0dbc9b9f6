from __future__ import annotations

from typing import Any

import pytest

from moorage.common.units import GIB
from moorage.engines.vllm.context import BASELINE, MOORAGE, LaunchPolicy, is_310p
from moorage.engines.vllm.environment import ascend_flags, variables
from moorage.spec import ExtendedCacheSpec
from tests.engines.vllm.contexts import a_context, hosts, line


def environment(*words: str, **changes: Any) -> dict[str, str]:
    return {item.name: item.value for item in variables(a_context(*words, **changes))}


@pytest.mark.parametrize("policy", [MOORAGE, BASELINE])
def test_a_server_is_silent_under_every_policy(policy: LaunchPolicy) -> None:
    assert set(environment(policy=policy)) == {
        "VLLM_NO_USAGE_STATS",
        "HF_HUB_OFFLINE",
        "OMP_NUM_THREADS",
        "SAFETENSORS_FAST_GPU",
        "RUNAI_STREAMER_MEMORY_LIMIT",
        "RUNAI_STREAMER_LOG_TO_STDERR",
        "RUNAI_STREAMER_LOG_LEVEL",
    }


def test_what_the_user_sets_is_not_derived() -> None:
    assert "OMP_NUM_THREADS" not in environment(user_variables=frozenset({"OMP_NUM_THREADS"}))


@pytest.mark.parametrize(("policy", "derived"), [(MOORAGE, False), (BASELINE, True)])
def test_only_the_baseline_overwrites_what_the_user_sets_and_no_default_does(
    policy: LaunchPolicy, derived: bool
) -> None:
    given = frozenset({"OMP_NUM_THREADS", "VLLM_HOST_IP", "LMCACHE_MAX_LOCAL_CPU_SIZE"})
    cache = ExtendedCacheSpec(ram=GIB)
    made = environment(members=hosts(4, 4), user_variables=given, cache=cache, policy=policy)
    assert given & made.keys() == (given - {"OMP_NUM_THREADS"} if derived else set())


def test_the_processes_of_an_extended_cache_hash_alike() -> None:
    cache = ExtendedCacheSpec(ram=GIB)
    assert environment(cache=cache)["PYTHONHASHSEED"] == "0"
    assert "PYTHONHASHSEED" not in environment()
    assert "PYTHONHASHSEED" not in environment(cache=cache, accelerator_type="cann")
    assert "PYTHONHASHSEED" not in environment(
        cache=cache, user_variables=frozenset({"PYTHONHASHSEED"})
    )
    assert environment(cache=cache, policy=BASELINE)["PYTHONHASHSEED"] == "0"


def test_compiled_kernels_are_kept_where_there_is_a_place() -> None:
    assert environment(cache_root="/cache")["VLLM_CACHE_ROOT"] == "/cache/vllm"
    assert "VLLM_CACHE_ROOT" not in environment()


@pytest.mark.parametrize(
    ("words", "changes", "ports"),
    [
        ([], {"policy": BASELINE}, {"VLLM_PORT": "40004", "RAY_LOG_TO_STDERR": "0"}),
        ([], {}, {"VLLM_PORT": "40003", "VLLM_DP_MASTER_PORT": "40004"}),
        (["-tp=8"], {}, {}),
        (["-tp=8"], {"members": hosts(4, 4, 4, 4)}, {"VLLM_DP_MASTER_PORT": "40004"}),
    ],
)
def test_each_way_of_joining_hosts_has_its_ports(
    words: list[str], changes: dict[str, Any], ports: dict[str, str]
) -> None:
    made = environment(*words, **{"members": hosts(4, 4), **changes})
    names = ("VLLM_PORT", "VLLM_DP_MASTER_PORT", "RAY_LOG_TO_STDERR")
    assert {name: made[name] for name in names if name in made} == ports


@pytest.mark.parametrize(
    ("kind", "given", "names"),
    [
        ("cuda", [], {"NCCL_SOCKET_IFNAME": "=eth0", "GLOO_SOCKET_IFNAME": "eth0"}),
        ("cuda", ["NCCL_SOCKET_IFNAME"], {}),
        (
            "cann",
            ["NCCL_SOCKET_IFNAME"],
            {
                "HCCL_SOCKET_IFNAME": "=eth0",
                "GLOO_SOCKET_IFNAME": "eth0",
                "TP_SOCKET_IFNAME": "eth0",
            },
        ),
        ("cann", ["HCCL_SOCKET_IFNAME"], {}),
    ],
)
def test_collectives_take_the_interface_between_the_hosts(
    kind: str, given: list[str], names: dict[str, str]
) -> None:
    made = environment(accelerator_type=kind, members=hosts(4, 4), user_variables=frozenset(given))
    assert {name: value for name, value in made.items() if name.endswith("IFNAME")} == names


def test_a_host_says_its_own_address() -> None:
    made = environment(members=hosts(4, 4), position=1, accelerator_type="cann")
    assert (made["VLLM_HOST_IP"], made["HCCL_IF_IP"]) == ("10.0.0.2", "10.0.0.2")


def test_310p_has_no_graphs_no_bfloat16_and_no_vector_communication() -> None:
    context = a_context(accelerator_type="cann", is_310p=True)
    assert line(ascend_flags(context)) == "--enforce-eager --dtype float16"
    assert "HCCL_OP_EXPANSION_MODE" not in environment(accelerator_type="cann", is_310p=True)
    assert environment(accelerator_type="cann")["HCCL_OP_EXPANSION_MODE"] == "AIV"
    assert ascend_flags(a_context(accelerator_type="cann")) == ()


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
