"""Steps list and choose: which of the quantizations of a model fits the fleet (`files: auto`)."""

from functools import cache

from moorage.adapters.sources import read_keys, resolve_one, unstored_source
from moorage.adapters.system.process import paused_collector
from moorage.adapters.system.threads import in_thread
from moorage.engines.registry import ENGINES
from moorage.inventory.snapshot import FleetSnapshot
from moorage.models.assets import assets_of
from moorage.models.profile import derive_profile
from moorage.models.quantizations import FilesChoice, Quantization, quantizations
from moorage.models.source import ResolvedModel, join_companions
from moorage.placement.file_choice import choose, offer_of
from moorage.placement.file_trial import Trial, in_whole
from moorage.placement.placement import Analyzed, Placement
from moorage.placement.propose import NoFit, propose
from moorage.spec import EngineName, ModelSpec
from tasks.context import settings
from tasks.flow_task import flow_task
from tasks.journal import step
from tasks.place import subject_of
from tasks.resolve import RESOLVE_SECONDS


@flow_task("list", "list the files of {spec.source}", timeout_seconds=RESOLVE_SECONDS, retried=True)
async def find_quantizations(spec: ModelSpec) -> tuple[Quantization, ...]:
    """List the quantizations of the model; none where there are no two of them."""

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

    Headers are read one after the other, as far as it takes. Nothing is stored or claimed.

    Raises:
        Failure: `NO_FIT` with the reason for each quantization; what resolving raises.
    """
    with step("choose") as note:
        choice = await in_thread(_choose, spec, found, snapshot, running)
        note.say(f"{choice.pattern}, {choice.reason}")
        return choice


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

        def proposal(trial: Trial) -> Placement | NoFit:
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
