"""The check inside a flow, once engine and image are known."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from moorage.adapters.engines.schema_store import SchemaStore
from moorage.common.failures import Cause, Failure
from moorage.common.units import GIB
from moorage.engines.schema.argument import Argument, Kind, Schema
from moorage.inventory.fleet import Fleet
from moorage.inventory.snapshot import HostSnapshot, Program
from moorage.placement.placement import Placed
from moorage.spec import EngineName
from tasks import image
from tasks.image import lacking_image_room
from tasks.plan import check_early, check_placed, plan_release
from tests.builders import (
    ON_CPU,
    a_cpu_host,
    a_fleet,
    a_host,
    a_model,
    a_placement,
    a_profile,
    a_spec,
    an_image,
)
from tests.operations.history.releases import planned

pytestmark = pytest.mark.usefixtures("own_home")

TYPO = ["--max-modle-len 4096"]
VLLM = {"name": "vllm", "runtime": "docker", "args": TYPO}
INSTALLED = Program(engine=EngineName.VLLM, path="/opt/vllm/bin/vllm", version="0.17.0")
NEWER = Program(engine=EngineName.TRANSFORMERS, path="/opt/bin/transformers", version="9.9.0")


async def noted(host: HostSnapshot, **wish: Any) -> tuple[str, ...]:
    """What is said to a spec that is placed on a host."""
    spec = a_spec(**wish)
    placed = Placed(spec, a_model(), a_profile(), a_placement(spec, host), a_fleet(host), "tiny.v1")
    checked = await check_placed(placed)
    return checked.warnings


async def test_the_engine_that_auto_chose_is_asked() -> None:
    with pytest.raises(Failure) as refusal:
        await noted(a_host(), engine={"args": TYPO})
    assert refusal.value.cause == Cause.BAD_SPEC
    assert "--max-modle-len" in refusal.value.detail


async def test_arguments_of_another_engine_are_its_own() -> None:
    own = ["--model-timeout 60"]
    assert await noted(a_cpu_host(), engine={"args": own}) == ()
    with pytest.raises(Failure, match=r"transformers 5\.23\.0 does not know it"):
        await noted(a_cpu_host(), engine={"args": ["--max-model-len=12", "--bogus"]})


async def test_arguments_of_a_version_that_nobody_looked_at_are_noted() -> None:
    (note,) = await noted(a_cpu_host(programs=(NEWER,)), engine={"args": ["--brand-new"]})
    assert note.endswith("which arguments this version knows is not known")
    with pytest.raises(Failure, match="--help: the engine would print"):
        await noted(a_cpu_host(programs=(NEWER,)), engine={"args": ["--help"]})


async def test_the_note_names_the_image_that_would_run() -> None:
    wanted = {"name": "vllm", "version": "0.9.1", "runtime": "docker", "args": ["--brand-new"]}
    (note,) = await noted(a_host(), engine=wanted)
    assert "`moorage schema vllm --image vllm/vllm-openai:v0.9.1` finds out" in note


async def test_an_installed_program_counts_with_its_own_version() -> None:
    host = a_cpu_host(programs=(INSTALLED,))
    engine = {"name": "vllm", "args": ["--swap-space 4"]}
    assert await noted(host, engine=engine, placement=ON_CPU) == ()


def test_a_rollback_starts_the_program_that_is_installed_now() -> None:
    spec = a_spec(engine={"name": "vllm"}, placement=ON_CPU)
    target, fresh = planned(spec, 1, installed("0.32.0")), planned(spec, 5, installed("0.33.0"))
    assert fresh.placement
    now = a_fleet(installed("0.33.0"))
    placed = Placed(spec, a_model(), a_profile(), fresh.placement, now, fresh.id)
    made = plan_release(placed, None, target=target)
    assert made.containers == plan_release(placed, None).containers
    assert made.containers[0].argv[0] == "/engines/vllm/0.33.0/bin/vllm"
    assert "tiny.v1 ran vllm 0.32.0; 0.33.0 is installed now" in made.warnings


def installed(version: str) -> HostSnapshot:
    """A host with a version of vLLM that moorage installed."""
    path = f"/engines/vllm/{version}/bin/vllm"
    return a_cpu_host(programs=(Program(engine=EngineName.VLLM, path=path, version=version),))


async def test_an_image_of_unknown_version_is_known_once_its_schema_is_there(
    tmp_path: Path,
) -> None:
    digest = "sha256:" + "ab" * 32
    engine = {"name": "vllm", "image": f"acme/vllm@{digest}", "args": ["--acme"]}
    (note,) = await noted(a_host(), engine=engine)
    assert "engine.args were not checked" in note

    own = Argument(options=("--acme",), kind=Kind.INTEGER)
    schema = Schema(engine="vllm", version="0.32.0+acme", arguments=(own,))
    SchemaStore(tmp_path).keep(schema, (digest,))
    with pytest.raises(Failure, match="its value is missing"):
        await noted(a_host(), engine=engine)


async def test_a_flow_refuses_before_it_looks_at_anything() -> None:
    with pytest.raises(Failure, match="--max-modle-len"):
        await check_early(a_spec(engine=VLLM), Fleet())
    with pytest.raises(Failure, match=r"transformers .* does not know it"):
        await check_early(a_spec(engine={"name": "transformers", "args": TYPO}), Fleet())
    await check_early(a_spec(engine={"args": TYPO}), Fleet())


async def test_a_command_of_no_engine_is_refused_before_anything_is_looked_at() -> None:
    with pytest.raises(Failure, match=r"engine\.command: neither"):
        await check_early(a_spec(engine={"command": ["serve"]}), Fleet())
    unnamed = {"command": ["serve"], "image": "own:1", "args": TYPO}
    await check_early(a_spec(engine=unnamed), Fleet())


async def test_the_default_version_of_the_fleet_counts() -> None:
    fleet = Fleet.model_validate({"engines": {"vllm": {"default_version": "0.17.0"}}})
    swap = {**VLLM, "args": ["--swap-space 4"]}
    await check_early(a_spec(engine=swap), fleet)
    with pytest.raises(Failure, match="gone since"):
        await check_early(a_spec(engine=swap), Fleet())


@pytest.mark.parametrize("line", [{"run_command": "acme {{model_path}}"}, {"entrypoint": "acme"}])
async def test_what_another_program_reads_is_not_checked(line: dict[str, str]) -> None:
    versions = {"default_version": "0.32.0", "versions": {"0.32.0": line}}
    fleet = Fleet.model_validate({"engines": {"vllm": versions}})
    await check_early(a_spec(engine=VLLM), fleet)
    await check_early(a_spec(engine={**VLLM, "entrypoint": ["acme"]}), Fleet())


@pytest.mark.parametrize("line", [{"run_command": "acme {{model_path}}"}, {"entrypoint": "acme"}])
async def test_another_programs_secret_has_no_place_on_its_command_line_either(
    line: dict[str, str],
) -> None:
    versions = {"default_version": "0.32.0", "versions": {"0.32.0": line}}
    fleet = Fleet.model_validate({"engines": {"vllm": versions}})
    engine = {**VLLM, "args": ["--api-key abcdefgh"]}
    with pytest.raises(Failure, match="secrets never stand in arguments") as refusal:
        await check_early(a_spec(engine=engine), fleet)
    assert refusal.value.cause == Cause.BAD_SPEC
    with pytest.raises(Failure, match="secrets never stand in arguments"):
        await noted(a_host(engines=fleet.engines), engine=engine)


async def test_a_secret_for_a_version_that_nobody_looked_at_is_refused() -> None:
    with pytest.raises(Failure, match="secrets never stand in arguments"):
        await noted(a_cpu_host(programs=(NEWER,)), engine={"args": ["--hf-token abcdefgh"]})


def test_an_entrypoint_of_ones_own_gets_no_secret_in_its_arguments() -> None:
    with pytest.raises(ValidationError, match="--api-key would show its secret"):
        a_spec(engine={"name": "vllm", "entrypoint": ["acme"], "args": ["--api-key abcdefgh"]})


@pytest.mark.parametrize(
    ("mode", "args"),
    [("image-generation", ["--stage-init-timeout 60"]), ("completion", ["--omni", "--stage 2"])],
)
async def test_what_vllm_omni_reads_is_judged_by_no_version_of_vllm(
    mode: str, args: list[str]
) -> None:
    engine = {"name": "vllm", "image": "acme/vllm-omni:1", "version": "0.32.0"}
    wish = {"mode": mode, "engine": {**engine, "args": args}}
    await check_early(a_spec(**wish), Fleet())
    (note,) = await noted(a_host(), **wish)
    assert note.endswith("which arguments this version knows is not known")
    with pytest.raises(Failure, match="--port: moorage decides"):
        await check_early(
            a_spec(mode=mode, engine={**engine, "args": [*args, "--port 9"]}), Fleet()
        )


IMAGE = an_image()
REMOTE = {"address": "ssh://gpu-1", "bind": "10.0.0.1", "image_disk_free": 12 * GIB}
UNKNOWN = {**REMOTE, "image_disk_free": None}


@pytest.mark.parametrize(
    ("host", "placement", "free"),
    [
        (REMOTE, {}, "12.0 GiB"),
        ({}, {}, "3.0 GiB"),
        (UNKNOWN, {}, ""),
        ({**REMOTE, "image_disk_free": 40 * GIB}, {}, ""),
        ({**REMOTE, "images": {f"mirror.example.com/vllm@{IMAGE.digest}"}}, {}, ""),
        (REMOTE, ON_CPU, ""),
    ],
)
def test_a_host_that_may_lack_room_for_the_image_is_named_before_the_pull(
    monkeypatch: pytest.MonkeyPatch, host: dict[str, Any], placement: dict[str, Any], free: str
) -> None:
    here = SimpleNamespace(disk_free=lambda: 3 * GIB)
    monkeypatch.setattr(image, "DockerImages", lambda _address: here)
    spec = a_spec(engine={"name": "vllm", "runtime": "docker"}, placement=placement)
    seen = a_host(**host)
    placed = Placed(spec, a_model(), a_profile(), a_placement(spec, seen), a_fleet(seen), "tiny.v1")
    lines = lacking_image_room(placed, IMAGE)
    assert [free in line and "takes up to 40.0 GiB" in line for line in lines] == [True] * bool(
        free
    )
    assert lacking_image_room(placed, None) == ()
