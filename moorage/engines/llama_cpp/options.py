"""The options of llama-server: other names, and options that fields of the spec replace.

All options by build are in `schemas.json`.
"""

from moorage.engines.llama_cpp.wheel import FIELDS
from moorage.engines.schema.argument import RemovedOption, Rules, Subset, reserved_options
from moorage.spec import EngineName

ALIASES: dict[str, tuple[str, ...]] = {
    "--alias": ("-a",),
    "--batch-size": ("-b",),
    "--cache-ram": ("-cram",),
    "--ctx-checkpoints": ("--swa-checkpoints", "-ctxcp"),
    "--ctx-size": ("-c",),
    "--embedding": ("--embeddings",),
    "--fit": ("-fit",),
    "--n-gpu-layers": ("-ngl", "--gpu-layers"),
    "--parallel": ("-np",),
    "--reranking": ("--rerank",),
    "--spec-draft-p-min": ("--draft-p-min",),
    "--threads": ("-t",),
    "--ubatch-size": ("-ub",),
    "--verbosity": ("-lv", "--log-verbosity"),
}
"""Other names of the options that moorage sets."""

ADDRESS = "moorage decides how the engine is reached, and asks it there"
COUNTED = "the claim has to hold the layers, so placement decides how many go there"
DIVIDED = "each accelerator was claimed for an equal number of layers"
ENDS = "the server would print something and end"
FETCHES = "it would fetch something that nobody has verified"
LENGTHS = "what each request gets, and the claim, follow from `context` and `concurrency`"
OWN_FILES = "it names a file that the engine's container does not have"
PLAIN_HTTP = "moorage proves readiness over plain HTTP; what ends TLS stands in front of it"
PROGRAMS = "it lets whoever asks the model run programs or read files of the host"
SECRETS = "secrets never stand in arguments: records, logs and processes show them"
UNCLAIMED = "it would take memory, or machines, that nobody has claimed"

REFUSED: tuple[tuple[str, str, str], ...] = (
    ("source", "the spec's source is what is served", "--model"),
    ("source", "it comes with the model's source", "--mmproj"),
    ("name", "requests name the model as the spec does", "--alias"),
    ("port", ADDRESS, "--port --api-prefix"),
    ("hosts[].bind", ADDRESS, "--host"),
    ("gateway", PLAIN_HTTP, "--ssl-key-file --ssl-cert-file"),
    ("secrets: {LLAMA_API_KEY: NAME}", SECRETS, "--api-key --api-key-file"),
    ("secrets: {HF_TOKEN: NAME}", SECRETS, "--hf-token"),
    ("speculative.model", "the draft model comes with the spec", "--spec-draft-model"),
    ("lora", "the adapters come with the spec", "--lora --lora-scaled"),
    ("context", LENGTHS, "--ctx-size"),
    ("concurrency", LENGTHS, "--parallel"),
    ("placement.partial_offload", COUNTED, "--n-gpu-layers --spec-draft-ngl"),
    ("placement.accelerators", DIVIDED, "--tensor-split"),
    ("", UNCLAIMED, "--moe-cache-mib --rpc"),
    ("", ENDS, "--help --version --license --list-devices --cache-list --completion-bash"),
    ("", PROGRAMS, "--tools --tools-runtime --agent"),
    ("", PROGRAMS, "--mcp-servers-config --mcp-servers-json --ui-mcp-proxy --webui-mcp-proxy"),
    ("", FETCHES, "--hf-repo --hf-file --hf-repo-v --hf-file-v --spec-draft-hf --hf-repo-draft"),
    ("", FETCHES, "--model-url --mmproj-url --docker-repo --models-dir --models-preset"),
    ("", FETCHES, "--embd-gemma-default --gpt-oss-20b-default --gpt-oss-120b-default"),
    ("", FETCHES, "--vision-gemma-4b-default --vision-gemma-12b-default --fim-qwen-1.5b-default"),
    ("", FETCHES, "--fim-qwen-3b-default --fim-qwen-7b-default --fim-qwen-30b-default"),
    ("", FETCHES, "--fim-qwen-7b-spec --fim-qwen-14b-spec"),
    ("", OWN_FILES, "--control-vector --control-vector-scaled --model-vocoder --log-file"),
    ("", OWN_FILES, "--log-prompts-dir --slot-save-path --media-path --path --grammar-file"),
    ("", OWN_FILES, "--json-schema-file --lookup-cache-static --lookup-cache-dynamic"),
    ("", OWN_FILES, "--ui-config-file --webui-config-file --video-ffmpeg-dir"),
)
"""Refused options, with the field that replaces them and the reason.

Each option is listed under one name; its other names are refused as well.
"""

OVERRIDING = {"speculative.method": "--spec-type", "mode": "--embedding --reranking"}
"""Options that override a field of the spec, by field."""

RAM_OPTIONS = {
    "--cpu-moe -cmoe": "the experts",
    "--n-cpu-moe -ncmoe": "experts of some layers",
    "--override-tensor -ot": "the tensors that it names",
    "--spec-draft-cpu-moe --cpu-moe-draft -cmoed": "experts of the draft model",
    "--spec-draft-n-cpu-moe --spec-draft-ncmoe --n-cpu-moe-draft -ncmoed": "experts of the draft",
    "--spec-draft-override-tensor --override-tensor-draft -otd": "tensors of the draft model",
    "--no-kv-offload -nkvo": "the KV cache",
    "--no-mmproj-offload": "the projector",
}
"""Options that keep bytes in RAM which the claim counts on the accelerators."""

RULES = Rules(
    title="llama-server",
    extracted_as=EngineName.LLAMA_CPP,
    reserved=reserved_options(OVERRIDING, REFUSED),
    removed={
        name: RemovedOption(instead=f"Use `{instead}`")
        for name, instead in (
            ("--checkpoint-every-n-tokens", "--checkpoint-min-step"),
            ("--clear-idle", "--cache-idle-slots"),
            ("--no-clear-idle", "--no-cache-idle-slots"),
        )
    },
)

RULES_OF_WHEEL = RULES.model_copy(
    update={
        "subset": Subset(
            options=frozenset(FIELDS),
            refused="the server in the xllamacpp wheel lacks it",
            suggestion="Take `runtime: docker`, or leave it out.",
        )
    }
)
"""Rules for the process runtime."""

DRAFTS_SINCE = 9235
"""First build that is known to have `--spec-type`."""


def build_of(version: str) -> str:
    """The number of a build, from a version such as `2026.10.11549` (wheel) or `b11549`."""
    return version.rpartition(".")[2].removeprefix("b")
