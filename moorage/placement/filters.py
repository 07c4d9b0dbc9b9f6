"""The filters that a host must pass before placement measures its accelerators."""

from collections.abc import Callable, Iterable, Sequence

from moorage.common.refusal import Reason, Refusal
from moorage.common.values import fields
from moorage.inventory.model_store import model_path
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.baseline.terms import by_baseline_rules
from moorage.placement.explanation import Verdict
from moorage.placement.fit import free_ports, port_refusal, ram_refusal
from moorage.placement.links import join_refusal, meeting_refusal, shares_network
from moorage.placement.placement import CPU
from moorage.placement.request import Request
from moorage.placement.runtime import (
    Hardware,
    alike,
    can_share_image,
    choose_runtime,
    image_variant,
    lacks_type,
)
from moorage.placement.view import AcceleratorKind, Chip, HostView, kinds_of, narrowed, select
from moorage.spec import RuntimeName

DISK_MARGIN = 1.05
"""Required free space, as a multiple of the missing bytes; staging requires the same."""

HIDDEN = (
    "the host has accelerators that the survey could not list;"
    " `placement.accelerators: 0` runs the model on its processors"
)


def filter_hosts(
    request: Request, views: Sequence[HostView]
) -> tuple[list[HostView], dict[str, Verdict]]:
    """The hosts that pass, narrowed to usable accelerators, and the verdicts on refused hosts."""
    able, refused = list(views), dict[str, Verdict]()
    checks = Filters(request, kinds_of(views)).checks
    for check in checks:  # one filter for all hosts, faster than all for one host
        left, able = able, []
        for view in left:
            try:
                able.append(check(view))
            except Refusal as refusal:
                refused[view.host.name] = Verdict.of(view.host.name, refusal)
    return able, refused


class Filters:
    """All filters, in order; the first that refuses a host names the reason.

    A filter returns the host, narrowed to the usable accelerators, or raises its `Refusal`. Filters
    that do not concern the request are left out. `kinds` are those of all hosts.
    """

    def __init__(self, request: Request, kinds: Iterable[AcceleratorKind]) -> None:
        self._request = request
        self._obstacles: dict[tuple[object, ...], str] = {}
        self._on_cpu = request.on_cpu
        self._services = request.engine.services(request.spec)
        self._ports = 1 + len(self._services)
        placement, port = request.spec.placement, request.spec.port
        by_rules = by_baseline_rules(request.spec)
        # Bytes of RAM that any seat needs, by kind of accelerator, whatever memory it claims.
        types = () if by_rules or self._on_cpu else request.engine.accelerator_types
        self._ram = {one: request.ram_for(one.type, 0) for one in kinds if one.type in types}
        self._disk = request.subject.disk_bytes * DISK_MARGIN
        table: tuple[tuple[bool, Callable[[HostView], HostView]], ...] = (
            (True, self._is_reachable),
            (bool(placement.host_labels), self._has_labels),
            (bool(request.listed_accelerators), self._is_named if by_rules else self._is_selected),
            (bool(placement.accelerator_kinds) and not self._on_cpu, self._has_the_kind),
            (True, self._runs_the_engine),
            (True, self._has_a_port if port == "auto" else self._has_the_port),
            (request.engine.meeting_ports(request.spec) > 0, self._has_a_block),
            (placement.ram != "auto", self._has_the_ram),
            (any(self._ram.values()), self._has_the_ram_with_it),
            (request.subject.disk_bytes > 0, self._has_the_disk),
            (request.must_span, self._can_be_joined),
            (by_rules, self._has_accelerators),
        )
        self.checks = tuple(check for concerns, check in table if concerns)

    def _is_reachable(self, view: HostView) -> HostView:
        if view.host.unreachable:
            raise Refusal(Reason.UNREACHABLE, view.host.unreachable)
        return view

    def _has_labels(self, view: HostView) -> HostView:
        wanted, labels = self._request.spec.placement.host_labels, view.host.labels
        differ = [f"{name}={value}" for name, value in wanted.items() if labels.get(name) != value]
        if differ:
            raise Refusal(Reason.LABELS, f"lacks {', '.join(differ)}")
        return view

    def _is_named(self, view: HostView) -> HostView:
        """Refuse a host that the spec does not select; the peer's rules check the rest."""
        hosts = sorted({host for _, host, _ in self._request.listed_accelerators})
        if view.host.name not in hosts:
            raise Refusal(Reason.NOT_SELECTED, f"the spec selects {', '.join(hosts)}")
        return view

    def _is_selected(self, view: HostView) -> HostView:
        self._is_named(view)
        wanted = self._request.listed_accelerators
        hosts = {host for _, host, _ in wanted}
        own = {(kind, index) for kind, host, index in wanted if host == view.host.name}
        shared = self._request.spec.placement.accelerators_per_replica is not None
        if len(hosts) > 1 and not (self._request.spans_hosts or shared):
            raise Refusal(Reason.ONE_HOST_ONLY, f"accelerators of {len(hosts)} hosts are selected")
        if len({kind for kind, _, _ in wanted}) > 1 and not shared:
            raise Refusal(Reason.MIXED_TYPES, "the selected accelerators are of several types")
        there = {(item.type, item.index) for item in view.host.accelerators}
        if missing := sorted(own - there):
            note = f"{_names(missing)} is not there; {_inventory(view.host)}"
            raise Refusal(Reason.NO_ACCELERATOR, note)
        chosen = select(view, own)
        if len(chosen.groups) > 1 and not shared:
            kinds = ", ".join(map(str, chosen.groups))
            raise Refusal(Reason.MIXED_TYPES, f"the selected accelerators are not alike: {kinds}")
        if sum(map(len, chosen.groups.values())) < len(own):
            raise Refusal(Reason.NO_ACCELERATOR, f"{_names(own)} cannot be used")
        return chosen

    def _has_the_kind(self, view: HostView) -> HostView:
        wanted = self._request.spec.placement.accelerator_kinds
        groups = {kind: room for kind, room in view.groups.items() if kind.is_one_of(wanted)}
        if not groups:
            note = f"{', '.join(wanted)} requested; {_inventory(view.host)}"
            raise Refusal(Reason.KIND, note)
        return narrowed(view, groups)

    def _runs_the_engine(self, view: HostView) -> HostView:
        """Keep the accelerators that the engine supports and that some runtime can pass to it."""
        if self._on_cpu:
            return self._runs_on_cpu(view)
        if len(view.groups) == 1:
            (kind,) = view.groups
            if not self._obstacle(view.host, view.chips[kind]):
                return view
        reasons = {kind: self._obstacle(view.host, view.chips[kind]) for kind in view.groups}
        if not any(reasons.values()):
            return view if reasons else self._runs_on_cpu(view)
        usable = {kind: room for kind, room in view.groups.items() if not reasons[kind]}
        if usable:
            return narrowed(view, usable)
        named = [reason for kind, reason in reasons.items() if self._supports(view.host, kind.type)]
        if named:
            raise Refusal(Reason.ENGINE, named[0])
        return self._runs_on_cpu(view)

    def _supports(self, host: HostSnapshot, kind: str) -> bool:
        """Whether the engine uses this kind, where a program that lacks it is not the only way."""
        request = self._request
        wanted = request.count or request.spec.placement.accelerator_kinds
        contained = RuntimeName.DOCKER in host.runtimes and request.spec.engine.runtime != "process"
        lacks = not (contained or wanted) and lacks_type(host.program(request.engine.name), kind)
        return kind in request.engine.accelerator_types and not lacks

    def _runs_on_cpu(self, view: HostView) -> HostView:
        engine = self._request.engine
        wanted = self._request.count or self._request.spec.placement.accelerator_kinds
        if not engine.runs_on_cpu or (wanted and not self._on_cpu):
            raise Refusal(
                Reason.NO_ACCELERATOR,
                f"{engine.name} can use none of what is there: {_inventory(view.host)}",
            )
        if view.host.hides_accelerators and not self._on_cpu:
            raise Refusal(Reason.NO_ACCELERATOR, HIDDEN)
        if reason := self._obstacle(view.host, Chip(CPU)):
            raise Refusal(Reason.ENGINE, reason)
        return narrowed(view, {})

    def _obstacle(self, host: HostSnapshot, chip: Chip) -> str:
        """Why no runtime can run the engine on a chip of a host; once for equal ones."""
        key = alike(host, chip)  # the views keep the hosts alive, so ids in the key stay valid
        obstacle = self._obstacles.get(key)
        if obstacle is None:
            obstacle = self._obstacles[key] = self._find_obstacle(Hardware(host, chip))
        return obstacle

    def _find_obstacle(self, hardware: Hardware) -> str:
        engine, kind = self._request.engine, hardware.chip.type
        if kind != CPU and kind not in engine.accelerator_types:
            return f"{engine.name} does not support {kind}"
        try:
            runtime = choose_runtime(self._request.spec, engine, hardware)
        except Refusal as refusal:
            return refusal.note
        return self._other_image(hardware) if runtime is RuntimeName.DOCKER else ""

    def _other_image(self, hardware: Hardware) -> str:
        """Why a container cannot start from the image of the other replicas; empty = it can."""
        request, other = self._request, self._request.shares_image_with
        if not other or can_share_image(request.spec, request.engine, other, hardware):
            return ""
        kind, variant = image_variant(other.chip)
        return f"all replicas start from one image, which is for {variant or kind}"

    def _has_a_port(self, view: HostView) -> HostView:
        there = fields(view.host)
        low, high = there["port_range"]
        needed = self._ports
        if len(there["ports_in_use"]) + len(there["claims"]) + needed <= high - low + 1:
            return view
        if len(free := free_ports(view.host, needed)) >= needed:
            return view
        if free:
            note = f"{needed} ports of {low}-{high} are needed, and {len(free)} are free"
            raise Refusal(Reason.PORT, note)
        raise Refusal(Reason.PORT, f"every port of {low}-{high} is taken")

    def _has_the_port(self, view: HostView) -> HostView:
        port, others = int(self._request.spec.port), self._services
        if refusal := port_refusal(view.host, port):
            raise refusal
        if len(free_ports(view.host, len(others), taken=(port,))) < len(others):
            low, high = view.host.port_range
            note = f"{' and '.join(others)} need ports of {low}-{high}, and too few are free"
            raise Refusal(Reason.PORT, note)
        return view

    def _has_a_block(self, view: HostView) -> HostView:
        spec = self._request.spec
        contained = RuntimeName.DOCKER in view.host.runtimes and spec.engine.runtime != "process"
        runtime = RuntimeName.DOCKER if contained else RuntimeName.PROCESS
        if not (self._request.must_span or shares_network(spec, runtime)):
            return view
        if refusal := meeting_refusal(self._request, view.host):
            raise refusal
        return view

    def _has_the_ram(self, view: HostView) -> HostView:
        if (needed := self._request.subject.ram) > view.room.ram:
            raise ram_refusal(view.host, needed, view.room.ram)
        return view

    def _has_the_ram_with_it(self, view: HostView) -> HostView:
        """Keep the accelerators for which the host has the accompanying RAM."""
        if not view.groups:
            return view
        needed = {kind: self._ram.get(kind, 0) for kind in view.groups}
        if max(needed.values()) <= view.room.ram:
            return view
        usable = {kind: view.groups[kind] for kind in needed if needed[kind] <= view.room.ram}
        if not usable:
            raise ram_refusal(view.host, min(needed.values()), view.room.ram)
        return narrowed(view, usable)

    def _has_the_disk(self, view: HostView) -> HostView:
        """Refuse a remote host that could not download the model, which a survey measures."""
        there, subject = fields(view.host), self._request.subject
        free = there["disk_free"]
        if free is None or free >= self._disk or subject.staged in there["models"]:
            return view
        source, _, revision = subject.staged.rpartition("@")
        begun = there["begun"].get(model_path(source, revision), 0)
        needed = int((subject.disk_bytes - begun) * DISK_MARGIN)
        if free >= needed:
            return view
        raise Refusal(Reason.DISK, needed=needed, available=free)

    def _can_be_joined(self, view: HostView) -> HostView:
        if refusal := join_refusal(self._request, view.host):
            raise refusal
        return view

    def _has_accelerators(self, view: HostView) -> HostView:
        if not view.groups:
            raise Refusal(Reason.NO_ACCELERATOR, "the baseline places on accelerators only")
        return view


def _names(accelerators: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{kind}:{index}" for kind, index in sorted(accelerators))


def _inventory(host: HostSnapshot) -> str:
    there = ", ".join(f"{item.type}:{item.index}" for item in host.accelerators)
    return f"the host has {there or 'no accelerators'}"
