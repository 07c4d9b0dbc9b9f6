"""What is read back out of a launch plan, in the words of a case."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from moorage.common.units import GIB
from moorage.common.values import Origin
from moorage.engines.flags import Flag
from moorage.engines.labels import LABEL_ROLE
from moorage.engines.launch import ContainerSpec, LaunchPlan
from moorage.inventory.claims import Resource
from moorage.placement.placement import Seat
from moorage.placement.role import Role
from moorage.spec.tokenize import is_option
from tests.conformance.launch_words import in_one_writing
from tests.conformance.launch_world import ADAPTER, adapters, is_on, number

Json = Mapping[str, Any]

OURS_ALONE = frozenset(
    {
        # The engine is held to its claim, which GPUStack leaves to the engine's own default.
        "--gpu-memory-utilization",
        # A model that embeds or ranks is served for that; GPUStack leaves it to the engine.
        *("--runner", "--task"),
        # Requests in flight may end; GPUStack lets them fail.
        "--shutdown-timeout",
    }
)
"""Derived options that GPUStack has no counterpart of."""

OURS_IN_ENV = frozenset(
    {
        # A server that neither reports home nor asks the hub, whoever placed it.
        *("VLLM_NO_USAGE_STATS", "HF_HUB_OFFLINE"),
        # Without it no block of an extended cache is found again.
        "PYTHONHASHSEED",
        # More is kept for the next start than GPUStack keeps.
        *("TRITON_CACHE_DIR", "VLLM_ENABLE_STARTUP_PLAN"),
        # A server that must not give up before `load_seconds` are over.
        "VLLM_ENGINE_READY_TIMEOUT_S",
        # A home that another user of the container may write.
        "HOME",
        # Where the engine finds its Ray; GPUStack's engine searches `/tmp`.
        "RAY_ADDRESS",
        # GPUStack's container runtime sets them, outside of what the cases judge.
        *("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "HIP_VISIBLE_DEVICES"),
        *("ASCEND_RT_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES", "MTHREADS_VISIBLE_DEVICES"),
    }
)
"""The same of variables."""

OPTED_IN = "NVIDIA_DISABLE_REQUIRE"
"""GPUStack sets it where the user opts in, moorage wherever the image needs it."""

CACHE_ROOT, OFFLOADED = "VLLM_CACHE_ROOT", "LMCACHE_MAX_LOCAL_CPU_SIZE"
ROUNDED = 0.0051
"""Of a number of two decimals."""

SERVING = ("--host", "--port", "--served-model-name")
CLIENT, HEAD_ONLY = 1, (0, 1, 2)
"""Places in Ray's range: of a port that nothing listens on, and of those of the head."""


@dataclass(frozen=True)
class Reading:
    """One host's part of a plan.

    Attributes:
        given: Input of the case.
        plan: The plan of all hosts.
        seat: What the replica has on this host.
    """

    given: Json
    plan: LaunchPlan
    seat: Seat

    @property
    def own(self) -> list[ContainerSpec]:
        """The containers on this host."""
        return [one for one in self.plan.containers if one.host == self.seat.host]

    @property
    def main(self) -> ContainerSpec:
        """The one that is not Ray's head."""
        return next(one for one in self.own if one.labels[LABEL_ROLE] != Role.RAY_HEAD)

    @property
    def is_clustered(self) -> bool:
        """Whether Ray joins the hosts."""
        return bool(self.seat.links and self.seat.links.ray)

    def words(self) -> dict[str, Any]:
        """The command line, and who decided about which part of it."""
        flags = self._flags()
        entry, start, rest = _parts(flags)
        derived = [word for flag in rest if not flag.written for word in flag.tokens]
        user = [word for flag in rest if flag.written for word in flag.tokens]
        first = next((i for i, word in enumerate(start) if is_option(word)), len(start))
        injected = self._back([*start[first:], *derived])
        argv = [*self._back([*start, *derived]), *user]
        return {
            "argv": argv,
            "user_argv": user,
            "injected": injected,
            "injected_stored": list(in_one_writing(injected, True)),
            "command": [*self._back(entry), *argv],
        }

    def environment(self) -> dict[str, str]:
        """The variables, without those that only moorage has."""
        opted = is_on((self.given.get("options") or {}).get("cuda_minor_compat"))
        kept = self.given.get("cache_dir") or ""
        found = {}
        for item in self.main.environment:
            ours = item.name in OURS_IN_ENV or (item.name == OPTED_IN and not opted)
            if item.origin == Origin.USER or not ours:
                # A secret is looked up at the start, under the name that the runner gave it.
                own = self.given["model"].get("env") or {}
                found[item.name] = own[item.secret] if item.secret else item.value
                if item.name == OFFLOADED and item.reason != "engine.env":
                    found[OFFLOADED] = self._offloaded(float(item.value))
        if found.get(CACHE_ROOT) == "/cache/vllm":
            # A folder for each model and image, below the same directory, mounted.
            assert any(one.kept and one.source.startswith(kept) for one in self.main.mounts)
            found[CACHE_ROOT] = f"{kept}/vllm"
        return found

    def _offloaded(self, each: float) -> str:
        """GiB on the host. Each rank takes what it is given, so ours gives each its part."""
        total, ranks = self.seat.ram_bytes, len(self.seat.accelerators) or 1
        assert abs(each * ranks - total / GIB) <= ranks * ROUNDED
        stated = (self.given["model"]["extended_kv_cache"].get("ram_size_gib") or 0) > 0
        return str(total // GIB) if stated and not total % GIB else str(round(total / GIB, 2))

    def container(self) -> dict[str, Any]:
        """What the container is given. On the host's network it holds ports by claim."""
        uid, _, gid = self.main.isolation.user.partition(":")
        stated = number((self.given.get("options") or {}).get("uid"), int)
        ray = range(0)
        if self.seat.links and self.seat.links.ray:
            ray = range(self.seat.links.ray[0], self.seat.links.ray[1] + 1)
        claims = {c.index for c in self.seat.claims if c.resource == Resource.PORT}
        devices = [int(index) for index in self.main.devices]
        return {
            "ports": sorted(claims.difference(ray)),
            "devices": {self.main.accelerator_type: devices} if devices else {},
            "mounts": [one for one in self._mounts(self.main) if not one.startswith("volume:")],
            "uid": int(uid) if uid and stated is not None else None,
            "gid": int(gid) if gid else None,
            # Beside a head the engine borrows the head's.
            "shm_bytes": max(one.shm_bytes for one in self.own),
        }

    def ray(self) -> dict[str, Any]:
        """Ray's part: the head on the leader's host, or the follower's own container."""
        assert self.seat.links
        assert self.seat.links.ray
        leads = self.seat.position == 0
        role = Role.RAY_HEAD if leads else Role.FOLLOWER
        ray = next(one for one in self.own if one.labels[LABEL_ROLE] == role)
        first = self.seat.links.ray[0]
        # On the host's network nothing is exposed; what is claimed may be listened on.
        unused = [CLIENT] if leads else HEAD_ONLY
        claims = {c.index for c in self.seat.claims if c.resource == Resource.PORT}
        ports = {port for port in claims if first <= port <= self.seat.links.ray[1]}
        main, own = _values(self.main), _values(ray)
        return {
            "container": "ray-head" if leads else "default",
            "command": [word for flag in ray.command for word in flag.tokens],
            "ports": sorted(ports.difference(first + at for at in unused)),
            "mounts": self._mounts(ray),
            "env_differs": {name: own[name] for name in own if main.get(name) != own[name]},
            "same_image": ray.image == self.main.image,
            "same_devices": ray.devices == self.main.devices,
        }

    def _flags(self) -> list[Flag]:
        """Of the engine. GPUStack makes them for followers too, whose servers serve nobody."""
        if self.seat.position == 0:
            return list(self.main.command)
        leader = next(one for one in self.plan.containers if one.labels[LABEL_ROLE] == Role.LEADER)
        flags = leader.command if self.is_clustered else self.main.command
        serving = [flag for flag in leader.command if flag.tokens[0] in SERVING]
        serving = [] if self.is_clustered else serving
        return [self._here(flag, leader.bind) for flag in (*flags, *serving)]

    def _here(self, flag: Flag, leader: str) -> Flag:
        if flag.tokens == ("--host", leader) and not flag.written:
            return flag.model_copy(update={"tokens": ("--host", self.main.bind)})
        return flag

    def _back(self, words: Sequence[str]) -> list[str]:
        """Paths of the container as those of the host, where GPUStack mounts them alike."""
        names = [item["name"] for item in adapters(self.given["model"])]
        return [
            re.sub(rf"{ADAPTER}(\d+)", lambda found: names[int(found[1])], self._on_host(word))
            for word in words
        ]

    def _on_host(self, word: str) -> str:
        mounts = [one for one in self.main.mounts if not (one.kept or one.volume)]
        for mount in sorted(mounts, key=lambda one: -len(one.target)):
            source = mount.source.replace("\\", r"\\")
            word = re.sub(rf"{re.escape(mount.target)}(?![\w-])", source, word)
        return word

    def _mounts(self, container: ContainerSpec) -> list[str]:
        """GPUStack mounts the parent of the model, ours the model alone; neither caches of ours."""
        path = self.given["model"]["path"]
        found = []
        for mount in container.mounts:
            if mount.source == path:
                found.append(str(PurePosixPath(path).parent))
            elif mount.volume:
                found.append(f"volume:tmp-volume:{mount.target}")
        return found


def _parts(flags: Sequence[Flag]) -> tuple[list[str], list[str], list[Flag]]:
    """Entrypoint, model or run command, and the flags that follow."""
    kept = [flag for flag in flags if flag.written or flag.tokens[0] not in OURS_ALONE]
    first, *rest = kept
    if first.reason.startswith("run_command"):
        return [], list(first.tokens), rest
    if first.reason == "the engine's own program" or first.reason.startswith("entrypoint"):
        return list(first.tokens), list(rest[0].tokens), rest[1:]
    return list(first.tokens[:-1]), list(first.tokens[-1:]), rest


def _values(container: ContainerSpec) -> dict[str, str]:
    """Without the variable by which the engine finds its Ray."""
    return {item.name: item.value for item in container.environment if item.name != "RAY_ADDRESS"}
