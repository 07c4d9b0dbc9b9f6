from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.common.units import GIB
from moorage.engines.request import LaunchRequest
from moorage.engines.transformers.engine import Transformers
from moorage.engines.vllm.engine import Vllm
from moorage.engines.vllm.engine_caches import (
    CONNECTOR,
    PLAN_SINCE,
    SEED,
    cache_folder,
    cache_mounts,
    kept_cache_variables,
    offload_flags,
    offload_variables,
    offload_warnings,
)
from moorage.spec import RuntimeName
from tests.builders import a_host, a_model, a_spec, an_accelerator, an_image
from tests.engines.vllm import requests

CACHES = "/home/moorage/cache"


def a_request(
    engine: dict[str, Any] | None = None,
    seat: dict[str, Any] | None = None,
    spec: dict[str, Any] | None = None,
    **changes: Any,
) -> LaunchRequest:
    """A container on one GPU whose caches are kept; `changes` are fields of the request."""
    found = requests.a_request(seat=seat, caches=CACHES, engine=engine or {}, **(spec or {}))
    return found.model_copy(update={"host": a_host(), **changes})


def folder(request: LaunchRequest) -> str:
    return cache_folder(request)


def plan_folder(request: LaunchRequest, *command: str) -> str:
    (found,) = (
        mount.source
        for mount in cache_mounts(request, command)
        if mount.target.endswith("/startup_plan")
    )
    return found


def variables(request: LaunchRequest) -> dict[str, str]:
    return {item.name: item.value for item in kept_cache_variables(request)}


def test_a_restart_of_the_same_finds_what_was_kept_whatever_its_release() -> None:
    assert folder(a_request()) == folder(a_request(release="tiny.v2"))
    assert folder(a_request()) == folder(a_request({"args": ["--seed 7"]}))
    assert folder(a_request()) == folder(a_request(seat={"accelerators": (1,)}))
    assert folder(a_request()).startswith(f"{CACHES}/tiny/vllm-0.32.0-cuda-")


@pytest.mark.parametrize(
    "changes",
    [
        {"image": an_image(digest=f"sha256:{'cd' * 32}")},
        {"image": an_image(digest="", identity="sha256:1234")},
        {"spec": {"name": "other"}},
        {
            "host": a_host(accelerators=(an_accelerator(name="NVIDIA H200"),)),
        },
        {
            "seat": {"accelerator_type": "rocm"},
            "host": a_host(accelerators=(an_accelerator(type="rocm"),)),
        },
    ],
    ids=["digest", "image id", "model", "product", "type"],
)
def test_what_differs_in_model_image_or_accelerator_is_kept_apart(changes: dict[str, Any]) -> None:
    assert folder(a_request(**changes)) != folder(a_request())


@pytest.mark.parametrize(
    ("engine", "caches"),
    [
        ({"keep_cache": False}, CACHES),
        ({"env": {"VLLM_CACHE_ROOT": "/own"}}, CACHES),
        ({}, ""),
    ],
    ids=["opted out", "a place of one's own", "nowhere"],
)
def test_nothing_is_kept_where_nobody_wants_it(engine: dict[str, Any], caches: str) -> None:
    request = a_request(engine, caches=caches)
    assert not folder(request)
    assert not list(cache_mounts(request, ()))
    assert not variables(request)


def test_a_process_keeps_its_cache_in_the_same_folder_without_a_plan() -> None:
    request = a_request(seat={"runtime": RuntimeName.PROCESS}, image=None)
    assert variables(request) == {"TRITON_CACHE_DIR": f"{folder(request)}/triton"}
    assert not list(cache_mounts(request, ()))


@pytest.mark.parametrize(
    ("version", "engine", "seat", "planned"),
    [
        ("0.32.0", {}, {}, True),
        (PLAN_SINCE, {}, {}, True),
        ("0.27.0", {}, {}, False),
        ("", {}, {}, False),
        ("0.32.0", {}, {"accelerator_type": "cpu", "accelerators": ()}, False),
        ("0.32.0", {"keep_cache": False}, {}, False),
        ("0.32.0", {"args": ["--gpu_memory_utilization=0.5"]}, {}, False),
        ("0.32.0", {"args": ["--kv-cache-memory-bytes 1G"]}, {}, False),
        ("0.32.0", {"command": ["vllm", "serve", "{{model_path}}"]}, {}, False),
    ],
)
def test_the_startup_plan_is_kept_where_it_is_known_and_safe(
    version: str, engine: dict[str, Any], seat: dict[str, Any], planned: bool
) -> None:
    request = a_request(engine, seat=seat, image=an_image(engine_version=version))
    assert ("VLLM_ENABLE_STARTUP_PLAN" in variables(request)) is planned
    targets = [mount.target for mount in cache_mounts(request, ())]
    assert ("/cache/vllm/startup_plan" in targets) is planned


def test_a_plan_made_with_another_share_of_the_memory_is_never_found() -> None:
    half = ("vllm", "serve", "--gpu-memory-utilization", "0.5")
    most = ("vllm", "serve", "--gpu-memory-utilization", "0.9")
    assert plan_folder(a_request(), *half) == plan_folder(a_request(release="tiny.v2"), *half)
    assert plan_folder(a_request(), *half) != plan_folder(a_request(), *most)
    assert plan_folder(a_request(), *half) != plan_folder(a_request({"args": ["--seed 7"]}), *half)
    assert plan_folder(a_request(), *half) != plan_folder(
        a_request(model=a_model(path="/other")), *half
    )


def test_what_one_user_wrote_is_not_given_to_another() -> None:
    folders = {folder(a_request({"container": {"user": user}})) for user in (0, 1000, 2000)}
    assert len({*folders, folder(a_request())}) == 4


def test_a_user_of_the_container_that_the_image_does_not_know_gets_a_home() -> None:
    assert variables(a_request({"container": {"user": 1000}}))["HOME"] == "/cache"
    assert "HOME" not in variables(a_request())


def with_extended_cache(wish: dict[str, Any], ranks: int = 1, kind: str = "cuda") -> LaunchRequest:
    """A seat that claims 10 GiB on its host."""
    claimed = {"accelerator_bytes": (10 * GIB // ranks,) * ranks}
    return requests.a_request(counts=(ranks,), kind=kind, seat=claimed, extended_kv_cache=wish)


@pytest.mark.parametrize(
    ("wish", "variables"),
    [
        ({"ram": 132 * GIB}, {"LMCACHE_MAX_LOCAL_CPU_SIZE": "132"}),
        ({"ram": 3 * GIB // 2, "ratio": 9.0}, {"LMCACHE_MAX_LOCAL_CPU_SIZE": "1.5"}),
        ({"ratio": 0.333}, {"LMCACHE_MAX_LOCAL_CPU_SIZE": "3.33"}),
        ({"ratio": 0.5}, {"LMCACHE_MAX_LOCAL_CPU_SIZE": "5.0"}),
        (
            {"ram": GIB, "chunk": 128},
            {"LMCACHE_MAX_LOCAL_CPU_SIZE": "1", "LMCACHE_CHUNK_SIZE": "128"},
        ),
    ],
)
def test_the_size_is_as_stated_else_a_share_of_what_is_claimed(
    wish: dict[str, Any], variables: dict[str, str]
) -> None:
    made = offload_variables(with_extended_cache(wish))
    assert {item.name: item.value for item in made if item is not SEED} == variables


@pytest.mark.parametrize(
    ("wish", "size"), [({"ram": 64 * GIB}, "16"), ({"ratio": 0.5}, "1.25"), ({"ram": GIB}, "0.25")]
)
def test_all_ranks_of_a_host_share_what_is_claimed_there(wish: dict[str, Any], size: str) -> None:
    made, _ = offload_variables(with_extended_cache(wish, ranks=4))
    assert (made.name, made.value) == ("LMCACHE_MAX_LOCAL_CPU_SIZE", size)
    assert made.reason.endswith("for each of 4 ranks")


@pytest.mark.parametrize(("kind", "there"), [("cuda", True), ("rocm", True), ("cann", False)])
def test_where_lmcache_does_not_run_it_is_left_out_and_told(kind: str, there: bool) -> None:
    request = with_extended_cache({"ram": GIB}, kind=kind)
    assert bool(offload_flags(request)) is there
    assert bool([*offload_variables(request)]) is there
    assert bool([*offload_warnings(request)]) is not there


def test_the_connector_is_one_option() -> None:
    (flag,) = offload_flags(with_extended_cache({"ram": GIB}))
    assert flag.tokens == ("--kv-transfer-config", CONNECTOR)


@pytest.mark.parametrize(
    ("wish", "kind", "ram"),
    [
        ({"ram": "16GiB"}, "cuda", 16 * GIB),
        ({"ratio": 0.5}, "rocm", 5 * GIB),
        ({}, "cuda", 12 * GIB),
        ({"ram": "16GiB"}, "cann", 0),
        (None, "cuda", 0),
    ],
)
def test_a_seat_has_to_claim_the_ram_of_its_cache(
    wish: dict[str, Any] | None, kind: str, ram: int
) -> None:
    spec = a_spec(extended_kv_cache=wish)
    assert Vllm().ram_on_accelerators(spec, kind, 10 * GIB) == ram
    assert Transformers().ram_on_accelerators(spec, kind, 10 * GIB) == 0


@pytest.mark.parametrize(
    ("words", "ram"),
    [
        ("--kv-offloading-size 8", 8 * GIB),
        ("--kv-offloading-size=0.5", GIB // 2),
        ("--kv-offloading-size 8 --data-parallel-size 4", 32 * GIB),
        (
            "--kv-offloading-size 8 --data-parallel-size 4 --data-parallel-size-local 2",
            16 * GIB,
        ),
        ("--kv-offloading-size 8 --tensor-parallel-size 4", 8 * GIB),
        ("--kv-offloading-size None", 0),
    ],
)
def test_it_claims_the_ram_of_vllms_own_cache_too(words: str, ram: int) -> None:
    assert Vllm().ram_on_accelerators(a_spec(engine={"args": [words]}), "cuda", GIB) == ram


@pytest.mark.parametrize("size", ["much", "-1", "nan", "1e300"])
def test_a_size_of_vllms_own_cache_that_is_none_is_refused(size: str) -> None:
    spec = a_spec(engine={"args": [f"--kv-offloading-size={size}"]})
    with pytest.raises(Failure, match="is no number of GiB") as caught:
        Vllm().ram_on_accelerators(spec, "cuda", GIB)
    assert caught.value.cause is Cause.BAD_SPEC
