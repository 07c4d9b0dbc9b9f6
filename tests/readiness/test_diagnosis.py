from __future__ import annotations

import re

import pytest

from moorage.common.failures import Cause, Failure
from moorage.engines.registry import ENGINES
from moorage.readiness.diagnosis import COMMON_CAUSES, TAIL_LINES, LogCause, diagnose
from moorage.spec import EngineName

CORE = "(EngineCore_DP0 pid=7) ERROR 03-01 12:00:05 [core.py:708]"
API = "(APIServer pid=1) ERROR 03-01 12:00:09 [api_server.py:90]"
WRAPPER = (
    f"{API} RuntimeError: Engine core initialization failed. See root cause above. "
    "Failed core proc(s): {'EngineCore_DP0': 1}"
)

KV_TOO_SMALL = (
    "ValueError: To serve at least one request with the model's max seq len (131072), (16.0 GiB KV"
    " cache is needed, which is larger than the available KV cache memory (9.1 GiB). Based on the"
    " available memory, the estimated maximum model length is 74544. Try increasing"
    " `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
)
FEW_STATES = (
    "ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (200). Each decode"
    " sequence requires one Mamba cache block, so CUDA graph capture cannot proceed."
)
NO_CACHE = (
    "ValueError: No available memory for the cache blocks. Try increasing"
    " `gpu_memory_utilization` when initializing the engine."
)
BUSY = (
    "ValueError: Free memory on device cuda:0 (12.3/79.2 GiB) on startup is less than desired GPU"
    " memory utilization (0.9, 71.24 GiB). Decrease GPU memory utilization or reduce GPU memory"
    " used by other processes."
)
UNSUPPORTED = (
    "ValueError: Model architectures ['MysteryForCausalLM'] are not supported for now. Supported"
    " architectures: dict_keys(['LlamaForCausalLM'])"
)
SHM = (
    "RuntimeError: Insufficient space in /dev/shm for the message queue: 160 MiB required,"
    " 128 MiB free"
)
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total"
    " capacity of 79.15 GiB of which 1.06 GiB is free."
)

CPU_BUSY = (
    "ValueError: Available memory on node 0 (3.2/23.5 GiB) on startup is less than desired CPU"
    " memory utilization (0.92, 21.62 GiB). On the CPU backend, the `--gpu-memory-utilization` flag"
    " controls the fraction of CPU memory reserved (despite its name)."
)
CPU_CACHE = (
    "ValueError: Available memory on node 0 (3.2/23.5 GiB) on kv cache allocation is less than"
    " requested memory for kv (8.0 GiB). Decrease --kv-cache-memory-bytes, VLLM_CPU_KVCACHE_SPACE,"
    " or reduce CPU memory used by other processes."
)
ENGINES_LATE = (
    "TimeoutError: Timed out waiting for engine core processes to start. This is often caused by"
    " slow weight loading for large models. Waited 600s (configured by"
    " VLLM_ENGINE_READY_TIMEOUT_S). To increase the timeout, set the environment variable:"
    " VLLM_ENGINE_READY_TIMEOUT_S=<seconds>"
)
OWN_CODE = (
    "ValueError: Loading /models/tiny requires you to execute the configuration file in that repo"
    " on your local machine. Make sure you have read the code there to avoid malicious use, then"
    " set the option `trust_remote_code=True` to remove this error."
)
OLD_DRIVER = (
    "RuntimeError: The NVIDIA driver on your system is too old (found version 12020). Please update"
    " your GPU driver"
)
NO_KERNEL = (
    "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device"
)
NO_BFLOAT16 = (
    "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your"
    " Tesla V100-SXM2-32GB GPU has compute capability 7.0. You can use float16 instead by"
    " explicitly setting the `dtype` flag in CLI, for example: --dtype=half."
)
OLD_DEVICE = (
    "ValueError: The quantization method awq_marlin is not supported for the current GPU. Minimum"
    " capability: 75. Current capability: 70."
)
GATED = (
    "huggingface_hub.errors.GatedRepoError: 403 Client Error. Cannot access gated repo for url"
    " https://huggingface.co/org/tiny/resolve/main/config.json."
)


def diagnosed(log: str, engine: EngineName = EngineName.VLLM) -> Failure:
    causes = ENGINES[engine].log_causes
    return diagnose(log, causes, Cause.ENGINE_EXITED, "tiny: exit code 1")


@pytest.mark.parametrize(
    ("line", "cause", "advice"),
    [
        (f"{CORE} {KV_TOO_SMALL}", Cause.ENGINE_KV_CACHE_TOO_SMALL, "Set `context: 74544`"),
        (
            "moorage-prepare: error: these packages could not be installed: a==1",
            Cause.PACKAGES_NOT_INSTALLED,
            "PIP_INDEX_URL",
        ),
        (
            "moorage-prepare: error: vllm is not in the image",
            Cause.PROGRAM_MISSING,
            "vllm is not in the image: set `engine.image`",
        ),
        (f"{CORE} {FEW_STATES}", Cause.ENGINE_KV_CACHE_TOO_SMALL, "--max-num-seqs 200"),
        (f"{CORE} {NO_CACHE}", Cause.ENGINE_KV_CACHE_TOO_SMALL, "more or larger accelerators"),
        (
            f"{CORE} ValueError: Cannot auto-fit max_model_len: not enough memory",
            Cause.ENGINE_KV_CACHE_TOO_SMALL,
            "more or larger accelerators",
        ),
        (f"{CORE} {BUSY}", Cause.ENGINE_ACCELERATOR_BUSY, "leftover processes"),
        (
            f"{CORE} AssertionError: Error in memory profiling. Initial free memory 30 GiB",
            Cause.ENGINE_ACCELERATOR_BUSY,
            "leftover processes",
        ),
        (f"{API} {UNSUPPORTED}", Cause.ENGINE_UNSUPPORTED_MODEL, "'MysteryForCausalLM'"),
        (f"{CORE} {SHM}", Cause.ENGINE_SHM_TOO_SMALL, "Raise `engine.shm` above 160 MiB"),
        (
            f"{CORE} RuntimeError: No working C++ compiler found in torch._inductor.config.cpp.cxx",
            Cause.PROGRAM_MISSING,
            "--enforce-eager",
        ),
        (f"{CORE} {CPU_BUSY}", Cause.ENGINE_OUT_OF_MEMORY, "VLLM_CPU_KVCACHE_SPACE"),
        (f"{CORE} {CPU_CACHE}", Cause.ENGINE_OUT_OF_MEMORY, "3.2 GiB of RAM were free"),
        (f"{API} {ENGINES_LATE}", Cause.LOAD_TIMEOUT, "VLLM_ENGINE_READY_TIMEOUT_S"),
        (
            f"{API} TimeoutError: Timed out waiting for engines to send initial message on input"
            " socket.",
            Cause.LOAD_TIMEOUT,
            "VLLM_ENGINE_READY_TIMEOUT_S",
        ),
        (f"{API} {OWN_CODE}", Cause.CONFIG_UNREADABLE, "`trust_remote_code: true`"),
        (f"{CORE} {OLD_DRIVER}", Cause.DRIVER_TOO_OLD, "Update the driver"),
        (f"{CORE} {NO_KERNEL}", Cause.ENGINE_NO_DEVICE, "not built for this accelerator"),
        (f"{CORE} {NO_BFLOAT16}", Cause.ENGINE_UNSUPPORTED_SETTING, "--dtype half"),
        (f"{API} {OLD_DEVICE}", Cause.ENGINE_UNSUPPORTED_QUANTIZATION, "compute capability 75"),
        (f"{API} {GATED}", Cause.SOURCE_GATED, "Request access"),
        (
            "ValueError: current platform cpu does not support ray.",
            Cause.ENGINE_UNSUPPORTED_SETTING,
            "without Ray on cpu",
        ),
        (
            f"{CORE}     assert self.intermediate_tensors is not None",
            Cause.ENGINE_UNSUPPORTED_SETTING,
            "--tensor-parallel-size",
        ),
        (
            f"{CORE} RuntimeError: unable to allocate shared memory(shm) for file </torch_1_2>",
            Cause.ENGINE_SHM_TOO_SMALL,
            "Raise `engine.shm`",
        ),
        (
            f"{CORE} ValueError: TinyForCausalLM does not support LoRA yet.",
            Cause.ENGINE_BAD_ADAPTER,
            "leave it out of `lora`",
        ),
        (
            "--omni flag requires a valid instance of vllm-omni to be installed.",
            Cause.PROGRAM_MISSING,
            "`engine.image`",
        ),
        (
            "importlib.metadata.PackageNotFoundError: vllm",
            Cause.PROGRAM_MISSING,
            "package metadata",
        ),
        (
            "ImportError: Please install vllm[audio] for audio support",
            Cause.PROGRAM_MISSING,
            "`engine.packages: [av, scipy, soundfile, soxr]`",
        ),
        ("RuntimeError: Failed to infer device type", Cause.ENGINE_NO_DEVICE, "hardware"),
        (
            "ValueError: World size (4) is larger than the number of available GPUs (2) in this"
            " node.",
            Cause.ENGINE_NO_DEVICE,
            "sees 2 accelerators and is to use 4",
        ),
        (f"{CORE} {OOM}", Cause.ENGINE_OUT_OF_MEMORY, "Lower `context`"),
        (
            "terminate called after throwing an instance of 'std::bad_alloc'",
            Cause.ENGINE_OUT_OF_MEMORY,
            "Lower `context`",
        ),
        (
            "OSError: [Errno 98] Address already in use",
            Cause.PORT_TAKEN,
            "Choose another `port`",
        ),
        (
            "ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 40000):"
            " address already in use",
            Cause.PORT_TAKEN,
            "Choose another `port`",
        ),
        ("OSError: [Errno 28] No space left on device", Cause.DISK_FULL, "MOORAGE_HOME"),
        (
            "vllm serve: error: unrecognized arguments: --max-len 8",
            Cause.ENGINE_BAD_ARGUMENT,
            "`engine.args`",
        ),
        (
            "vllm serve: error: argument --max-model-len: invalid int value: 'lots'",
            Cause.ENGINE_BAD_ARGUMENT,
            "`engine.args`",
        ),
        ("| No such option: --max-len", Cause.ENGINE_BAD_ARGUMENT, "`engine.args`"),
        (
            "ValueError: The checkpoint you are trying to load has model type `mystery` but"
            " Transformers does not recognize this architecture.",
            Cause.ENGINE_UNSUPPORTED_MODEL,
            "newer `engine.version`",
        ),
        (
            "ModuleNotFoundError: No module named 'requests'",
            Cause.PROGRAM_MISSING,
            "Install it",
        ),
    ],
    ids=lambda value: value if isinstance(value, Cause) else "",
)
def test_the_log_gives_the_cause_away(line: str, cause: Cause, advice: str) -> None:
    failure = diagnosed(f"INFO 03-01 12:00:00 [api_server.py:1] starting\n{line}\n{WRAPPER}")
    assert failure.cause is cause
    assert advice in failure.suggestion
    assert failure.evidence == line
    assert failure.detail.startswith("tiny: exit code 1; the log says: ")


@pytest.mark.parametrize(
    "entry",
    [*COMMON_CAUSES, *(cause for engine in ENGINES.values() for cause in engine.log_causes)],
    ids=lambda entry: entry.pattern,
)
def test_a_suggestion_uses_only_what_its_pattern_names(entry: LogCause) -> None:
    groups = re.compile(entry.pattern).groupindex
    assert set(re.findall(r"\{(\w*)\}", entry.suggestion)) <= set(groups)
    assert entry.suggestion or entry.cause.suggestion


LLAMA_CPP = {
    "an adapter that does not fit its model": (
        "0.00.096.274 E llama_adapter_lora_init_from_file_ptr: failed to apply lora adapter: tensor"
        " 'blk.0.attn_output.weight' has incorrect shape (hint: maybe wrong base model?)\n"
        "0.00.096.317 E cmn  common_init_: failed to load lora adapter '/adapters/poet/p.gguf'\n"
        "0.00.096.978 E srv          init: exiting due to model loading error",
        Cause.ENGINE_UNSUPPORTED_MODEL,
        "The adapter /adapters/poet/p.gguf does not fit",
    ),
    "a model file that is gone": (
        "0.00.007.340 E gguf_init_from_file: failed to open GGUF file '/models/t.gguf' (No such"
        " file or directory)\n"
        "0.00.007.382 E cmn  common_init_: failed to load model '/models/t.gguf'\n"
        "error: Failed to init server, please check the input params.",
        Cause.SOURCE_MISSING,
        "/models/t.gguf is no longer there",
    ),
    "a model file of another user": (
        "0.00.005.232 E gguf_init_from_file: failed to open GGUF file '/models/t.gguf' (Permission"
        " denied)\n"
        "0.00.005.421 E cmn  common_init_: failed to load model '/models/t.gguf'\n"
        "error: Failed to init server, please check the input params.",
        Cause.ENGINE_EXITED,
        "The engine's user may not read /models/t.gguf",
    ),
}


@pytest.mark.parametrize(("log", "cause", "advice"), LLAMA_CPP.values(), ids=LLAMA_CPP)
def test_llama_cpp_names_the_file_that_it_cannot_load(log: str, cause: Cause, advice: str) -> None:
    failure = diagnosed(log, EngineName.LLAMA_CPP)
    assert failure.cause is cause
    assert advice in str(failure.suggestion)


def test_a_model_that_the_engines_user_may_not_read_is_named() -> None:
    log = "PermissionError: [Errno 13] Permission denied: '/models/tiny/config.json'"
    failure = diagnosed(log, EngineName.TRANSFORMERS)
    assert failure.cause is Cause.ENGINE_EXITED
    assert "may not read /models/tiny/config.json" in str(failure.suggestion)


HEALTHY_START = """\
WARNING 03-01 11:59:58 [interface.py:197] Failed to import from vllm._C: \
ModuleNotFoundError("No module named 'vllm._C'")
INFO 03-01 12:00:00 [__init__.py:241] Automatically detected platform cuda.
(APIServer pid=1) INFO 03-01 12:00:01 [api_server.py:1896] vLLM API server version 0.32.0
(APIServer pid=1) WARNING 03-01 12:00:01 [config.py:9] The model's config has no pad token id.
get_mempolicy: Operation not permitted
(EngineCore_DP0 pid=7) INFO 03-01 12:00:03 [importing.py:53] Triton not installed or not \
compatible; certain GPU-related functions will not be available.
(EngineCore_DP0 pid=7) WARNING 03-01 12:00:03 [topk_topp_sampler.py:59] FlashInfer is not \
available. Falling back to the PyTorch-native implementation.
(EngineCore_DP0 pid=7) INFO 03-01 12:00:04 [gpu_worker.py:492] Initial free memory 78.1 GiB, \
reserved 60.0 GiB memory for KV Cache. If OOM'ed, check the difference of initial free memory.
(EngineCore_DP0 pid=7) INFO 03-01 12:00:07 [kv_cache_utils.py:1087] GPU KV cache: 425,424 tokens
Capturing CUDA graphs (decode, FULL): 100%|##########| 35/35 [00:01<00:00, 17.82it/s]
(APIServer pid=1) INFO 03-01 12:00:14 [launcher.py:36] Route: /health, Methods: GET
INFO:     Application startup complete."""


def test_what_a_healthy_start_says_is_no_cause() -> None:
    failure = diagnosed(HEALTHY_START)
    assert (failure.cause, failure.evidence) == (Cause.ENGINE_EXITED, "")
    assert failure.detail == "tiny: exit code 1"


RAY_WORKERS = ("(RayWorkerWrapper pid=30312)", "(RayWorkerProc pid=412, ip=10.0.0.2)", "(pid=9)")


@pytest.mark.parametrize("worker", RAY_WORKERS)
@pytest.mark.parametrize("before", ["", "(EngineCore_DP0 pid=7) "])
def test_ray_puts_its_workers_name_before_their_lines_in_colour(worker: str, before: str) -> None:
    named = f"{before}\x1b[36m{worker}\x1b[0m"
    warning = f"{named} {HEALTHY_START.splitlines()[0]}"
    assert diagnosed(warning).cause is Cause.ENGINE_EXITED
    error = f"{named} ERROR 03-01 12:00:05 [worker_base.py:267] KeyError: 'lm_head'"
    assert diagnosed(f"{warning}\n{error}").evidence == "KeyError: 'lm_head'"


def test_the_noise_of_the_start_does_not_hide_the_cause() -> None:
    failure = diagnosed(f"{HEALTHY_START}\n{CORE} {OOM}")
    assert failure.cause is Cause.ENGINE_OUT_OF_MEMORY


def test_the_engines_own_texts_are_looked_for_before_the_common_ones() -> None:
    failure = diagnosed(f"{CORE} {OOM}\n{CORE} {BUSY}")
    assert failure.cause is Cause.ENGINE_ACCELERATOR_BUSY


def test_of_several_errors_that_are_known_the_first_one_counts() -> None:
    failure = diagnosed(f"{CORE} {OOM}\n{CORE} OSError: [Errno 28] No space left on device")
    assert failure.cause is Cause.ENGINE_OUT_OF_MEMORY


@pytest.mark.parametrize(
    ("log", "evidence"),
    [
        (
            "(APIServer pid=1574) RuntimeError: \n"
            "(APIServer pid=1574)         An attempt has been made to start a new process",
            "RuntimeError: An attempt has been made to start a new process",
        ),
        (f"{CORE} KeyError: 'lm_head'\n{WRAPPER}", "KeyError: 'lm_head'"),
        (f"{WRAPPER}\n{CORE} KeyError: 'lm_head'", "KeyError: 'lm_head'"),
        ("ValueError: first\nTypeError: second", "ValueError: first"),
        ("pydantic_core._pydantic_core.ValidationError: 1 error", None),
        ("Traceback (most recent call last):\n  raise ValueError(x)\nsomewhere error", ""),
        (WRAPPER, ""),
        (
            f"{API} vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See"
            f" stack trace (above) for the root cause.\n{CORE} KeyError: 'lm_head'",
            "KeyError: 'lm_head'",
        ),
        (
            "pydantic_core.ValidationError: 1 validation error for ModelConfig\n  Value error, no",
            "Value error, no",
        ),
        (f"{API} RuntimeError: Worker failed with error 'x', please check the stack trace", ""),
        ("", ""),
    ],
)
def test_else_the_first_error_is_shown_and_never_one_that_only_wraps_another(
    log: str, evidence: str | None
) -> None:
    failure = diagnosed(log)
    assert failure.cause is Cause.ENGINE_EXITED
    assert failure.evidence == (log if evidence is None else evidence)
    assert failure.log_tail == log


def test_the_evidence_is_shortened_in_the_detail_only() -> None:
    failure = diagnosed(f"ValueError: {'x' * 500}")
    assert len(failure.evidence) == 512
    assert len(failure.detail) < 400


def test_what_the_line_names_travels_with_the_failure() -> None:
    assert diagnosed(f"{CORE} {KV_TOO_SMALL}").named == {"asked": "131072", "length": "74544"}
    assert diagnosed(f"{CORE} {BUSY}").named == {
        "free": "12.3",
        "total": "79.2",
        "share": "0.9",
        "wanted": "71.24",
    }


def test_a_long_log_is_searched_whole_and_kept_in_part() -> None:
    failure = diagnosed(f"{CORE} {OOM}\n" + "a frame of a traceback\n" * 500)
    assert failure.cause is Cause.ENGINE_OUT_OF_MEMORY
    assert len(failure.log_tail.splitlines()) == TAIL_LINES
