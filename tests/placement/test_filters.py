from __future__ import annotations

from typing import Any

import pytest

from moorage.adapters.transfer.file_checks import MARGIN
from moorage.common.refusal import Reason
from moorage.common.units import GIB
from moorage.engines.registry import ENGINES
from moorage.inventory.snapshot import Accelerator, HostSnapshot, Program
from moorage.placement.explanation import Verdict
from moorage.placement.filters import DISK_MARGIN, filter_hosts
from moorage.placement.request import Request
from moorage.placement.view import view_of
from moorage.spec import EngineName, ModelSpec
from tests.builders import ON_CPU, a_cpu_host, a_host, a_spec, an_accelerator
from tests.engines.planning import LLAMA_INSTALLED
from tests.placement.requests import a_request


def an_amd(index: int) -> Accelerator:
    return an_accelerator(index, type="rocm", name="AMD Instinct MI300X")


MIXED = (an_accelerator(0), an_accelerator(1), an_amd(2), an_accelerator(3, 24))


def on(accelerators: Any = "auto", **changes: Any) -> ModelSpec:
    return a_spec(placement={"accelerators": accelerators, **changes})


def usable(request: Request, host: HostSnapshot) -> list[str]:
    """Kinds of accelerators that may be used on a host, with their number."""
    ((view,), _) = filter_hosts(request, [view_of(host)])
    return [f"{len(room)} x {kind.type}" for kind, room in view.groups.items()]


def verdict(request: Request, host: HostSnapshot) -> Verdict:
    able, refused = filter_hosts(request, [view_of(host)])
    assert not able
    return refused[host.name]


@pytest.mark.parametrize(
    ("spec", "kinds"),
    [
        (on(), ["2 x cuda", "1 x rocm", "1 x cuda"]),
        (on(accelerator_kinds=["amd"]), ["1 x rocm"]),
        (on(accelerator_kinds=["nvidia"]), ["2 x cuda", "1 x cuda"]),
        (on(["gpu-1:cuda:1"]), ["1 x cuda"]),
        (on(["gpu-1:cuda:01"]), ["1 x cuda"]),
        (on(["gpu-1:rocm:2"], accelerator_kinds=["*MI300*"]), ["1 x rocm"]),
        (on(0), []),
        (on(0, accelerator_kinds=["cuda"]), []),
    ],
    ids=str,
)
def test_a_host_is_narrowed_to_what_may_be_used(spec: ModelSpec, kinds: list[str]) -> None:
    assert usable(a_request(spec), a_host(accelerators=MIXED)) == kinds


def test_the_fleet_is_not_changed_by_looking_at_it() -> None:
    host = a_host(accelerators=MIXED)
    before = host.model_dump_json()
    usable(a_request(on(accelerator_kinds=["amd"])), host)
    assert host.model_dump_json() == before


@pytest.mark.parametrize(
    ("spec", "host", "refused", "note"),
    [
        (on(accelerator_kinds=["amd"]), a_host(), Reason.KIND, "amd requested; the host has"),
        (on(accelerator_kinds=["cuda"]), a_cpu_host(), Reason.KIND, "has no accelerators"),
        (
            on(accelerator_kinds=["cann"]),
            a_host(accelerators=(an_accelerator(type="cann"),)),
            Reason.ENGINE,
            "no official image of vllm for cann",
        ),
        (
            on(accelerator_kinds=["mthreads"]),
            a_host(accelerators=(an_accelerator(type="musa"),)),
            Reason.ENGINE,
            "not verified how a container gets single accelerators of musa",
        ),
        (
            on(accelerator_kinds=["tpu"]),
            a_host(accelerators=(an_accelerator(type="tpu"),)),
            Reason.NO_ACCELERATOR,
            "vllm can use none",
        ),
        (
            on(["gpu-1:cuda:0"], accelerator_kinds=["amd"]),
            a_host(accelerators=MIXED),
            Reason.KIND,
            "amd requested",
        ),
        (
            on(["gpu-1:cuda:0", "gpu-1:cuda:3"]),
            a_host(accelerators=MIXED),
            Reason.MIXED_TYPES,
            "not alike",
        ),
        (
            on(["gpu-1:cuda:0"]),
            a_host(accelerators=(an_accelerator(0, 0),)),
            Reason.NO_ACCELERATOR,
            "cuda:0 cannot be used",
        ),
        (
            on(1),
            a_host(accelerators=(an_accelerator(0, 0),)),
            Reason.NO_ACCELERATOR,
            "the host has cuda:0",
        ),
    ],
    ids=lambda value: value if isinstance(value, Reason) else "",
)
def test_a_host_is_refused_before_its_memory_is_looked_at(
    spec: ModelSpec, host: HostSnapshot, refused: Reason, note: str
) -> None:
    found = verdict(a_request(spec), host)
    assert found.refusal == refused
    assert note in found.note


STAGED = "hf://org/tiny-1.5@abc"
BEGUN = {"org--tiny-1.5/abc": 6 * GIB}


@pytest.mark.parametrize(
    ("known", "needed"),
    [
        ({"disk_free": 8 * GIB}, int(8.4 * GIB)),
        ({"disk_free": 8 * GIB, "models": frozenset({"hf://org/tiny-1.5@old"})}, int(8.4 * GIB)),
        ({"disk_free": 2 * GIB, "begun": BEGUN}, int(2.1 * GIB)),
        ({"disk_free": 8 * GIB, "models": frozenset({STAGED})}, 0),
        ({"disk_free": 3 * GIB, "begun": BEGUN}, 0),
        ({"disk_free": 9 * GIB}, 0),
        ({"disk_free": None}, 0),
    ],
    ids=["full", "another revision", "begun", "there", "most is there", "room", "not measured"],
)
def test_a_host_that_lacks_the_model_needs_room_for_it(known: dict[str, Any], needed: int) -> None:
    request = a_request(staged=STAGED, disk_bytes=8 * GIB)
    host = a_host(store="/srv/moorage", **known)
    if not needed:
        assert usable(request, host)
        return
    found = verdict(request, host)
    numbers = (Reason.DISK, needed, known["disk_free"])
    assert (found.refusal, found.needed, found.available) == numbers
    assert found.detail.startswith("disk of models: ")


def test_placement_and_staging_require_the_same_room() -> None:
    assert DISK_MARGIN == MARGIN


@pytest.mark.parametrize("order", [("old", "new"), ("new", "old")])
def test_a_driver_that_is_too_old_for_the_image_is_the_matter_of_its_host_alone(
    order: tuple[str, str],
) -> None:
    version = {"old": "11.0", "new": "13.0"}
    fleet = [
        a_host(name, accelerators=(an_accelerator(runtime_version=version[name]),))
        for name in order
    ]
    able, refused = filter_hosts(a_request(), [view_of(host) for host in fleet])
    assert [view.host.name for view in able] == ["new"]
    assert "update its driver" in refused["old"].note


def test_accelerators_of_one_index_but_two_types_are_told_apart() -> None:
    host = a_host(accelerators=(an_accelerator(0), an_amd(0)))
    assert usable(a_request(on(["gpu-1:rocm:0"])), host) == ["1 x rocm"]


def test_an_engine_on_cpu_is_not_put_on_a_host_because_it_cannot_use_the_kind_asked_for() -> None:
    tpu = a_host(accelerators=(an_accelerator(type="tpu"),))
    assert usable(a_request(on()), tpu) == []
    assert verdict(a_request(on(accelerator_kinds=["tpu"])), tpu).refusal


def test_a_selection_over_hosts_needs_an_engine_and_leave_to_span_them() -> None:
    names = ["gpu-1:cuda:0", "gpu-2:cuda:0"]
    spans = on(names, across_hosts=True)
    other = a_request(spans, engine=ENGINES[EngineName.TRANSFORMERS])
    assert verdict(other, a_host()).refusal == Reason.ONE_HOST_ONLY
    assert verdict(a_request(on(names)), a_host()).refusal == Reason.ONE_HOST_ONLY
    assert usable(a_request(spans), a_host()) == ["1 x cuda"]


def test_a_program_is_not_what_a_spec_with_settings_of_a_container_means() -> None:
    program = Program(engine=EngineName.VLLM, path="/opt/vllm", version="0.32.0")
    host = a_host(runtimes=("process",), programs=(program,))
    shut = a_spec(engine={"container": {"user": 1000}})
    assert verdict(a_request(shut), host).refusal == Reason.ENGINE


def test_a_process_that_could_not_be_held_to_its_accelerators_is_not_started() -> None:
    program = Program(engine=EngineName.VLLM, path="/opt/vllm", version="0.32.0")
    gaudi = (an_accelerator(type="hpu"),)
    host = a_host(runtimes=("process",), programs=(program,), accelerators=gaudi)
    found = verdict(a_request(on(1)), host)
    assert found.refusal == Reason.ENGINE
    assert "no variable is known" in found.note


def test_a_program_that_is_installed_serves_where_there_is_no_container() -> None:
    program = Program(engine=EngineName.VLLM, path="/opt/vllm", version="0.32.0")
    host = a_host(runtimes=("process",), programs=(program,))
    assert usable(a_request(), host) == ["2 x cuda"]
    assert verdict(a_request(), a_host(runtimes=("process",))).refusal == Reason.ENGINE


@pytest.mark.parametrize(
    ("types", "docker", "spec", "kinds"),
    [
        ((), False, on(), ["2 x cuda"]),
        (("cpu", "cuda"), False, on(), ["2 x cuda"]),
        (("cpu",), True, on(), ["2 x cuda"]),
        (("cpu",), False, on(), []),
        (("cpu",), True, a_spec(engine={"runtime": "process"}), []),
    ],
)
def test_a_program_that_computes_on_cpu_only_is_placed_there(
    types: tuple[str, ...], docker: bool, spec: ModelSpec, kinds: list[str]
) -> None:
    program = LLAMA_INSTALLED.model_copy(update={"computes_on": types})
    host = a_host(runtimes=("process", *["docker"] * docker), programs=(program,))
    request = a_request(spec, engine=ENGINES[EngineName.LLAMA_CPP])
    assert usable(request, host) == kinds


def test_accelerators_that_the_program_lacks_are_refused_where_the_spec_wants_them() -> None:
    program = LLAMA_INSTALLED.model_copy(update={"computes_on": ("cpu",)})
    host = a_host(runtimes=("process",), programs=(program,))
    found = verdict(a_request(on(1), engine=ENGINES[EngineName.LLAMA_CPP]), host)
    assert found.refusal == Reason.ENGINE
    assert "moorage-llama-server, as it is installed, does not compute on cuda" in found.note


@pytest.mark.parametrize(
    ("ports", "in_use", "fits"),
    [
        ((9000, 9000), (), True),
        ((9000, 9000), (9000,), False),
        ((9000, 9001), (9000, 1, 2, 3), True),
        ((9000, 9001), (9000, 9001), False),
    ],
)
def test_a_host_needs_a_free_port(
    ports: tuple[int, int], in_use: tuple[int, ...], fits: bool
) -> None:
    host = a_host(port_range=ports, ports_in_use=in_use)
    if fits:
        assert usable(a_request(), host)
    else:
        assert verdict(a_request(), host).refusal == Reason.PORT


def test_a_host_with_hidden_accelerators_computes_on_its_processors_only_if_told_to() -> None:
    host, llama = a_cpu_host(programs=(LLAMA_INSTALLED,)), ENGINES[EngineName.LLAMA_CPP]
    hiding = host.model_copy(update={"hides_accelerators": True})
    assert usable(a_request(on(), engine=llama), host) == []
    assert usable(a_request(on(0), engine=llama), hiding) == []
    refused = verdict(a_request(on(), engine=llama), hiding)
    assert refused.refusal is Reason.NO_ACCELERATOR
    assert "could not list" in refused.note


@pytest.mark.parametrize(
    ("images", "there"),
    [
        (frozenset[str](), False),
        (frozenset({"vllm/vllm-openai:v0.32.0"}), True),
        (frozenset({"vllm/vllm-openai:v0.1.0"}), False),
    ],
)
def test_an_image_that_is_there_is_known_by_its_reference(
    images: frozenset[str], there: bool
) -> None:
    view = view_of(a_host(images=images))
    (kind,) = view.groups
    assert a_request().images.on(view, kind) is there


def test_no_image_is_there_for_what_no_image_is_known() -> None:
    transformers = a_request(a_spec(placement=ON_CPU), engine=ENGINES[EngineName.TRANSFORMERS])
    npu = an_accelerator(type="cann", name="")
    view = view_of(a_host(images=frozenset({"some/image:1"}), accelerators=(npu,)))
    (kind,) = view.groups
    assert not transformers.images.on(view, kind)
