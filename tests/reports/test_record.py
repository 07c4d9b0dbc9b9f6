from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from moorage.common.failures import Cause, Failure
from moorage.common.units import GIB
from moorage.common.values import Origin
from moorage.engines.flags import Flag
from moorage.engines.launch import Preparation
from moorage.engines.plan import plan_launch
from moorage.engines.recovery import Correction, with_correction
from moorage.engines.workload import Workload
from moorage.images.image import Image
from moorage.inventory.snapshot import HostSnapshot
from moorage.models.pin import AssetRole, Pin
from moorage.models.quantizations import FilesChoice, FileVerdict
from moorage.models.source import SkippedFile
from moorage.operations.redeploy.intent import Answer
from moorage.placement.placement import Placed
from moorage.readiness.acceptance import Acceptance, LoadFigures
from moorage.readiness.engine_facts import EngineFacts
from moorage.readiness.protocol import Phase, ProbeResult, Readiness
from moorage.releases.release import FailureRecord, Release, Restart, StepRecord
from moorage.releases.states import ReleaseState, Stay
from moorage.reports.document import Document, Section
from moorage.reports.evidence import readiness_document
from moorage.reports.record import (
    LOG_LINES_SHOWN,
    failure_document,
    plan_document,
    profile_document,
    release_document,
)
from moorage.spec import ModelSpec
from tests.builders import (
    LEDGER,
    NOON,
    a_container,
    a_cpu_host,
    a_fleet,
    a_host,
    a_measurement,
    a_model,
    a_placement,
    a_plan,
    a_profile,
    a_release,
    a_spec,
    a_workload,
    an_image,
)

Golden = Callable[[str, str], None]

ON_GPUS = a_spec(
    name="llama",
    engine={"args": ["--max-num-seqs 8"], "env": {"PATTERN": "a|b"}},
    placement={"accelerators": 2},
    secrets={"HF_TOKEN": "hub-token"},
)
ON_CPU = a_spec(placement={"accelerators": 0, "ram": "16GiB"}, port=8000)

ON_A_HOST = [phase for phase in Phase if phase != Phase.DEPLOYED]


def planned(spec: ModelSpec, image: Image | None, *hosts: HostSnapshot) -> Release:
    """A release up to its plan."""
    placement, release = a_placement(spec, *hosts), f"{spec.name}.v2"
    placed = Placed(spec, a_model(), a_profile(), placement, a_fleet(*hosts), release)
    plan = plan_launch(placed, image, LEDGER)
    return a_release(
        release,
        spec=spec,
        spec_digest="0123456789ab",
        profile=a_profile(),
        placement=placement,
        image=image,
        plan=plan,
    )


def served(release: Release) -> Release:
    """The same release, verified and serving."""
    assert release.plan
    phases = zip(ON_A_HOST, (0.9, 41.25, 41.3, 75.5), (3, 20, 1, 1), strict=True)
    answers = {Phase.ANSWERED: "'Hello|' (length)", Phase.LISTENING: "accepted"}
    probes = tuple(
        ProbeResult(phase=phase, seconds=seconds, attempts=attempts, detail=answers.get(phase, ""))
        for phase, seconds, attempts in phases
    )
    workloads = tuple(
        a_workload(spec.name, host=spec.host, endpoint=spec.endpoint)
        for spec in release.plan.containers
    )
    return release.model_copy(
        update={
            "workloads": workloads,
            "readiness": tuple(
                Readiness(workload=w.name, endpoint=w.endpoint, probes=probes) for w in workloads
            ),
            "facts": tuple(map(some_facts, workloads)),
            "measured": tuple(a_measurement(workload=w.name) for w in workloads),
            "steps": (
                StepRecord(name="resolve", seconds=0.4, summary="a3c1f0e5b7d94c2e8f, 9 files"),
                StepRecord(name="verify", seconds=75.5, summary="'Hello' (length)"),
            ),
            "replaced": f"{release.model}.v1",
            "replacement": "started while the old release served, which stopped after",
            "flow_run_id": "5f0c8e1e",
            "finished_at": NOON + timedelta(seconds=90),
        }
    )


def some_facts(workload: Workload) -> EngineFacts:
    return EngineFacts(
        workload=workload.name,
        version="0.32.0",
        planned_version="0.32.0",
        names=("llama", "poet"),
        context=4096,
        planned_context=8192,
        kv_cache_bytes=60 * GIB,
        kv_tokens=491520,
    )


def failed(cause: Cause, detail: str = "", log: str = "") -> str:
    failure = Failure(cause, detail, log_tail=log)
    return failure_document("tiny", failure, "").markdown()


def a_table(cell: str) -> str:
    section = Section(header=("head",), rows=((cell,),))
    return Document(title="title", sections=(section,)).markdown()


def test_the_record_of_a_release_on_gpus(golden: Golden) -> None:
    release = served(planned(ON_GPUS, an_image(), a_cpu_host(), a_host()))
    golden("release.md", release_document(release).markdown() + "\n")


def test_the_record_of_a_release_that_needed_a_second_try(golden: Golden) -> None:
    correction = Correction(
        option="--max-model-len",
        before="8192",
        value="4096",
        stated="context",
        cause=Cause.ENGINE_KV_CACHE_TOO_SMALL,
        reason="the engine itself named it",
        evidence="ValueError: the estimated maximum model length is 4096.",
    )
    release = planned(ON_CPU, None, a_cpu_host())
    assert release.plan
    plan = with_correction(
        release.plan, correction, {spec.name for spec in release.plan.containers}
    )
    corrected = release.model_copy(update={"plan": plan, "corrections": (correction,)})
    golden("release_corrected.md", release_document(corrected).markdown() + "\n")


def test_the_record_of_a_release_that_failed(golden: Golden) -> None:
    failure = FailureRecord(
        cause=Cause.LOAD_TIMEOUT, detail="900 s", suggestion="Wait.", log_tail="INFO loading"
    )
    release = planned(ON_CPU, None, a_cpu_host()).model_copy(update={"failure": failure})
    golden("release_failed.md", release_document(release).markdown() + "\n")


def test_a_plan_shows_what_a_deploy_would_run(golden: Golden) -> None:
    golden("plan.md", plan_document(planned(ON_CPU, None, a_cpu_host())).markdown() + "\n")


@pytest.mark.parametrize("shown", [plan_document, release_document])
def test_each_quantization_is_shown_with_what_became_of_it(
    shown: Callable[[Release], Document],
) -> None:
    large = FileVerdict(name="Q8_0.gguf", bytes=8 * GIB, refusal="placement.ram is 6.0 GiB")
    small = FileVerdict(name="Q4_0.gguf", bytes=4 * GIB)
    choice = FilesChoice(pattern="Q4_0.gguf", reason="the largest", verdicts=(large, small))
    text = shown(a_release(files=choice)).markdown().replace("\N{NO-BREAK SPACE}", " ")
    assert "| Q8_0.gguf | 8.0 GiB | placement.ram is 6.0 GiB |" in text
    assert "| Q4_0.gguf | 4.0 GiB | taken: the largest |" in text
    assert "Q4_0.gguf (the largest)" in text


def test_a_model_is_shown_with_the_files_that_are_used_and_left(golden: Golden) -> None:
    left = SkippedFile(name="pytorch_model.bin", size=8 * GIB, reason="the same weights again")
    model = a_model(skipped=(left,))
    golden("model.md", profile_document(a_spec(), model, a_profile()).markdown() + "\n")


@pytest.mark.parametrize(
    ("cell", "written"),
    [("0.02 s", "0.02\u00a0s"), ("2 min 05 s", "2\u00a0min\u00a005\u00a0s"), ("2 of 3", "2 of 3")],
)
def test_a_narrow_column_does_not_part_a_number_from_its_unit(cell: str, written: str) -> None:
    section = Section(header=("took",), rows=((cell,),))
    assert written in Document(title="x", sections=(section,)).markdown()


def test_readiness_is_a_row_for_each_phase() -> None:
    release = served(planned(ON_CPU, None, a_cpu_host()))
    (section,) = readiness_document(release.id, release.readiness).sections
    assert [phase for _, phase, *_ in section.rows] == ON_A_HOST
    assert section.rows[-1][-1] == "'Hello|' (length)"


def test_a_failure_shows_cause_suggestion_evidence_and_log(golden: Golden) -> None:
    failure = Failure(
        Cause.ENGINE_OUT_OF_MEMORY,
        "moorage-llama.v2-r0-leader: exit code 1",
        log_tail="INFO loading\ntorch.OutOfMemoryError: CUDA out of memory",
        evidence="torch.OutOfMemoryError: CUDA out of memory",
    )
    golden("failure.md", failure_document("llama", failure, "llama.v2").markdown() + "\n")


def test_a_failure_before_any_release_has_no_log_and_no_release() -> None:
    text = failed(Cause.NO_FIT, "gpu-1: too small")
    assert "| Release | none yet |" in text
    assert "log" not in text


def test_the_reason_of_each_host_stays_on_a_line_of_its_own() -> None:
    assert "gpu-1: ram\ngpu-2" not in failed(Cause.NO_FIT, "gpu-1: ram\ngpu-2: ram")


def test_only_the_end_of_a_long_log_is_shown() -> None:
    text = failed(Cause.ENGINE_EXITED, log="\n".join(f"line {n}" for n in range(200)))
    assert text.count("\nline ") == LOG_LINES_SHOWN
    assert "line 199" in text


def test_a_log_cannot_end_its_own_block() -> None:
    log = "before\n```\n# not a headline\n```"
    fence = failed(Cause.ENGINE_EXITED, log=log).splitlines()[-1]
    assert fence.startswith("```")
    assert fence not in log.splitlines()


@pytest.mark.parametrize(
    ("cell", "written"),
    [("a|b", r"a\|b"), ("a\nb", "a<br>b"), ("<s>", "&lt;s>"), ("", "")],
)
def test_a_cell_cannot_break_its_table(cell: str, written: str) -> None:
    assert a_table(cell) == f"# title\n\n| head |\n| --- |\n| {written} |"


def test_a_section_without_content_is_left_out() -> None:
    document = release_document(a_release())
    assert [section.title for section in document.sections] == [""]


@pytest.mark.parametrize(
    ("state", "title"),
    [
        (ReleaseState.RUNNING, "tiny.v1 serves tiny"),
        (ReleaseState.UNREACHABLE, "tiny.v1 is unreachable"),
        (ReleaseState.STOPPED, "tiny.v1 is stopped"),
        (ReleaseState.ERROR, "tiny.v1 failed"),
    ],
)
def test_the_title_says_whether_it_still_serves(state: ReleaseState, title: str) -> None:
    states = (Stay(state=ReleaseState.RUNNING, since=NOON), Stay(state=state, since=NOON))
    assert release_document(a_release(), states).title == title


@pytest.mark.parametrize(
    ("note", "shown"),
    [("go on (ann@desk)", "go on (ann@desk)"), ("", "given in Prefect's UI or API")],
)
def test_who_approved_it_is_on_the_record(note: str, shown: str) -> None:
    approved = a_release(approval=Answer(approve=True, note=note).approval)
    assert f"| Approval | {shown} |" in release_document(approved).markdown()
    assert "Approval" not in release_document(a_release()).markdown()


def test_a_start_after_a_death_is_told_with_its_cause() -> None:
    again = Restart(at=NOON, replicas=(0, 2), reason="exited: 137", flow_run_id="run-7")
    text = release_document(a_release().model_copy(update={"restarts": (again,)})).markdown()
    assert "## Restarts (UTC)" in text
    assert f"| {NOON:%Y-%m-%d %H:%M:%S} | 0, 2 | exited: 137 | run-7 |" in text


def test_a_secret_is_named_and_never_shown() -> None:
    text = plan_document(planned(ON_GPUS, an_image(), a_host())).markdown()
    assert "| HF_TOKEN | secret hub-token | user | secrets |" in text


def test_a_plan_tells_what_is_added_what_is_written_and_what_happens_first() -> None:
    words = (
        Flag(tokens=("vllm", "serve"), origin=Origin.DERIVED, reason="its program"),
        Flag(tokens=("--seed", "7"), origin=Origin.USER, reason="engine.args", written=True),
    )
    first = Preparation(packages=("acme==1.2",), without_cuda_compat=True)
    container = a_container(command=words, preparation=first)
    page = plan_document(a_release(plan=a_plan(container, engine_version=""))).markdown()
    for row in (
        "| vllm serve | derived | its program |",
        "| --seed 7 | user | engine.args |",
        "| installs first | acme==1.2 |",
        "| removes first | /usr/local/cuda*/compat: libraries for newer drivers |",
        "| Engine version | unknown |",
    ):
        assert row in page


def test_a_record_names_what_its_adapters_were_pinned_to_and_what_was_loaded_since() -> None:
    poet = Pin(role=AssetRole.ADAPTER, name="poet", source="hf://org/poet", revision="a1b2", rank=8)
    draft = Pin(role=AssetRole.DRAFT, name="draft", source="hf://org/small", revision="c3d4")
    later = poet.model_copy(update={"name": "later"})
    release = a_release(companions=(poet, draft), workloads=(a_workload(adapters=(later,)),))
    text = release_document(release).markdown()
    assert "| Adapter poet | hf://org/poet at a1b2, rank 8 |" in text
    assert "| Draft model | hf://org/small at c3d4 |" in text
    assert "Adapters loaded later" in text
    assert "| later | hf://org/poet | a1b2 | 8 |" in text
    assert "Adapter poet" in plan_document(release).markdown()


def test_a_record_has_the_figures_of_a_load_and_those_of_the_release_before() -> None:
    now = LoadFigures(requests=32, ttft_p50=0.1, ttft_p95=1.5, tokens_per_second=90.5, goodput=2)
    missed = "TTFT p95 1.50 s; at most 1.00 s allowed"
    outcome = Acceptance(figures=now, before=now, against="tiny.v1", misses=(missed,))
    document = release_document(a_release("tiny.v2", acceptance=outcome))
    load = next(part for part in document.sections if part.title == "Load")
    figures = ("32", "100 ms", "1.50 s", "unknown", "unknown", "90.5", "2")
    assert load.text == missed
    assert load.rows == (("tiny.v2", *figures), ("tiny.v1", *figures))
