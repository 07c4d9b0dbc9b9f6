"""The names of engines and of runtimes."""

from enum import StrEnum


class EngineName(StrEnum):
    """Inference engines. `auto` is decided from the host; `custom` is whatever you say it is."""

    AUTO = "auto"
    VLLM = "vllm"
    SGLANG = "sglang"
    TRANSFORMERS = "transformers"
    LLAMA_CPP = "llama.cpp"
    TRITON = "triton"
    CUSTOM = "custom"


class RuntimeName(StrEnum):
    """What starts an engine on a host."""

    AUTO = "auto"
    DOCKER = "docker"
    PROCESS = "process"
    RAY = "ray"
