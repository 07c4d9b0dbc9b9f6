"""Steps list, choose, resolve and derive: choose the files of a model and derive its profile."""

import asyncio
from functools import cache

from moorage.adapters.secrets import read_secrets
from moorage.adapters.sources import read_keys, resolve_one, source_for, unstored_source
from moorage.adapters.system.process import paused_collector
from moorage.adapters.system.threads import in_thread
from moorage.common.units import counted, human_bytes
from moorage.engines.registry import ENGINES
from moorage.inventory.snapshot import FleetSnapshot
from moorage.models.assets import Asset, assets_of
from moorage.models.profile import ModelProfile, derive_profile
from moorage.models.quantizations import FilesChoice, Quantization, quantizations
from moorage.models.source import ResolvedModel, join_companions
from moorage.placement.file_choice import FileTrial, choose, in_whole, offer_of
from moorage.placement.placement import Analyzed, Placed, Placement
from moorage.placement.propose import NoFit, propose
from moorage.reports.record import profile_document
from moorage.spec import EngineName, ModelSpec, slug
from tasks.artifacts import show_markdown
from tasks.context import settings
from tasks.flow_task import flow_task
from tasks.journal import step
from tasks.place import subject_of
from tasks.smoke_test import must_talk

RESOLVE_SECONDS = 300


@flow_task("list", "list the files of {spec.source}", timeout_seconds=RESOLVE_SECONDS, retried=True)
async def find_quantizations(spec: ModelSpec) -> tuple[Quantization, ...]:
    """List the quantizations of the model; empty where it has fewer than two."""

    def listed() -> tuple[Quantization, ...]:
        asset, gguf = assets_of(spec)[0], spec.engine.stated_name == EngineName.LLAMA_CPP
        with unstored_source(asset, settings(), read_keys(spec)) as source:
            return quantizations(source.files(asset), preferred=gguf)

    with step("list") as note:
        found = await in_thread(listed)
        note.say(f"{len(found)} quantizations" if found else "nothing to choose from")
        return found


@flow_task(
    "choose",
    "choose a quantization of {spec.source}",
    timeout_seconds=RESOLVE_SECONDS,
    retried=True,
)
async def choose_files(
    spec: ModelSpec, found: tuple[Quantization, ...], snapshot: FleetSnapshot, running: str
) -> FilesChoice:
    """Choose the quantization to serve.

    Reads file headers one after the other until one fits. Stores and claims nothing.

    Raises:
        Failure: `NO_FIT` with the reason for each quantization; errors of resolving.
    """
    with step("choose") as note:
        choice = await in_thread(_choose, spec, found, snapshot, running)
        note.say(f"{choice.pattern}, {choice.reason}")
        return choice


async def resolve(spec: ModelSpec) -> ResolvedModel:
    """Find the model, its adapters and its draft model, without downloading weights."""
    assets = assets_of(spec)
    found = await asyncio.gather(*(resolve_asset(spec, asset) for asset in assets))
    later = str(settings().adapters_folder(spec.name)) if spec.lora_updates else ""
    return join_companions(assets, found).model_copy(update={"updates_folder": later})


async def resolve_untracked(spec: ModelSpec) -> ResolvedModel:
    """Resolve without task runs, which would be too many to read in a run over many models."""
    assets = assets_of(spec)
    found = await asyncio.gather(*(resolve_asset.untracked(spec, asset) for asset in assets))
    return join_companions(assets, found)


@flow_task("resolve", "resolve {asset.source}", timeout_seconds=RESOLVE_SECONDS, retried=True)
async def resolve_asset(spec: ModelSpec, asset: Asset) -> ResolvedModel:
    """Find one of a spec's assets at its source."""
    with step(f"resolve{asset.step}") as note:
        # A missing secret fails now, not when the old release has stopped for this one.
        await in_thread(read_secrets, sorted(set(spec.secrets.values())))
        keys = await in_thread(read_keys, spec)
        found = await in_thread(resolve_one, asset, settings(), keys)
        note.say(
            f"{found.revision[:18]}, {counted(len(found.files), 'file')},"
            f" {human_bytes(found.bytes_to_stage)}, {found.weights.family}"
        )
        return found


@flow_task("derive", "derive {spec.name}")
async def derive(spec: ModelSpec, model: ResolvedModel) -> ModelProfile:
    """Read architecture, mode, context length and sizes from the configuration."""
    with step("derive") as note:
        profile = derive_profile(spec, model)
        must_talk(spec, profile)
        page = profile_document(spec, model, profile).markdown()
        await show_markdown(f"model-{slug(spec.name)}", page, f"What {spec.source} is")
        what = ", ".join(profile.architectures) or profile.model_type or "unknown"
        note.say(
            f"{what}, {profile.mode}, {profile.context} tokens,"
            f" {human_bytes(profile.weight_bytes)} of weights"
        )
        return profile


async def lacking_room(placed: Placed) -> tuple[str, ...]:
    """Assets that a deploy cannot download because this machine's disk lacks room, a line each."""
    hosts = (placed.snapshot.host(seat.host) for seat in placed.placement.seats)
    if placed.snapshot.clusters or all(host.store for host in hosts):
        return ()
    lines = []
    for asset, found in zip(assets_of(placed.spec), placed.model.parts, strict=True):
        source = source_for(asset, settings())
        if lacking := await in_thread(source.lacking_room, found):
            lines.append(f"{asset.source} could not be downloaded: {lacking}")
    return tuple(lines)


def _choose(
    spec: ModelSpec, found: tuple[Quantization, ...], snapshot: FleetSnapshot, running: str
) -> FilesChoice:
    keys, assets = read_keys(spec), assets_of(spec)
    companions = [resolve_one(asset, settings(), keys) for asset in assets[1:]]
    with unstored_source(assets[0], settings(), keys) as source:

        @cache
        def read(one: Quantization) -> ResolvedModel:
            model = source.resolve(assets[0].model_copy(update={"files": one.pattern}))
            return join_companions(assets, [model, *companions])

        def proposal(trial: FileTrial) -> Placement | NoFit:
            wanted = in_whole(spec) if trial.whole else spec
            return _proposal(wanted, read(trial.quantization), snapshot, running)

        return choose(offer_of(found, spec, snapshot), proposal)


def _proposal(
    spec: ModelSpec, model: ResolvedModel, snapshot: FleetSnapshot, running: str
) -> Placement | NoFit:
    subject = subject_of(Analyzed(spec, model, derive_profile(spec, model)))
    try:
        with paused_collector():
            return propose(subject, snapshot, ENGINES, running)
    except NoFit as failure:
        return failure
