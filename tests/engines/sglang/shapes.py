"""Plans of SGLang for the shapes in `shapes.yaml`, through the real planning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from moorage.common.strict_yaml import decode
from moorage.common.units import GIB, parse_bytes
from moorage.engines.launch import ContainerSpec, LaunchPlan
from moorage.inventory.claims import Claim, Resource
from moorage.inventory.snapshot import HostSnapshot, Program
from moorage.spec import EngineName
from tests.builders import a_host, an_accelerator, an_image
from tests.engines.planning import Wish, over_hosts, planned

SHAPES: dict[str, Any] = decode(Path(__file__).with_name("shapes.yaml").read_text())
INSTALLED = Program(engine=EngineName.SGLANG, path="/opt/sglang/bin/sglang", version="0.5.23")
IMAGE = an_image(reference="lmsysorg/sglang:v0.5.23", engine_version="0.5.23")


def plan_of(name: str) -> LaunchPlan:
    """The plan of a shape."""
    shape = SHAPES[name]
    spec = shape.get("spec", {})
    wish = {**spec, "engine": {"name": "sglang", **spec.get("engine", {})}}
    profile = shape.get("profile", {})
    hosts = [_host(at, shape) for at in range(1, shape.get("hosts", 1) + 1)]
    image = None if "installed" in shape else IMAGE
    if own := wish["engine"].get("image"):
        image = an_image(reference=own, engine_version=shape["version"])
    if len(hosts) > 1:
        return over_hosts(wish, *hosts, image=image, **profile)
    return planned(wish, hosts[0], image, **profile)


def with_sizes(
    args: str, hosts: int, gpus: int, wish: Wish | None = None, **placement: int
) -> tuple[ContainerSpec, ...]:
    """What is planned for these arguments on hosts with as many accelerators each."""
    placement |= {"hosts": hosts} if hosts > 1 else {}
    engine = {"name": "sglang", "args": [args] if args else []}
    wish = {**(wish or {}), "engine": engine, "placement": placement}
    there = [a_host(f"gpu-{at}", gpus) for at in range(1, hosts + 1)]
    if hosts == 1:
        return planned(wish, there[0], IMAGE).containers
    weights = 40 * gpus * hosts * GIB
    plan = over_hosts(wish, *there, image=IMAGE, weight_bytes=weights, context=8192)
    return plan.containers


def words(container: ContainerSpec) -> list[str]:
    """The arguments behind the program."""
    line = [token for flag in container.command for token in flag.tokens]
    return line[line.index("--model-path") :]


def _host(at: int, shape: dict[str, Any]) -> HostSnapshot:
    name = f"gpu-{at}"
    facts: dict[str, Any] = {}
    if "claimed" in shape:
        amount = parse_bytes(shape["claimed"])
        held = Claim(host=name, resource=Resource.ACCELERATOR, amount=amount, release="other.v1")
        facts["claims"] = (held,)
    if "type" in shape:
        facts["accelerators"] = (an_accelerator(type=shape["type"]),)
    if "installed" in shape:
        facts["programs"] = (INSTALLED,)
    return a_host(name, shape.get("gpus", 1), **facts)
