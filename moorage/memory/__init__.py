"""How much accelerator memory vLLM will take for weights and KV cache: exact, before it starts.

The rules are those of vLLM 0.32. Everything follows from config.json and the tensor headers;
what the rules do not cover is a refusal with a reason, never zero bytes.
"""

from moorage.memory.demand import MemoryModel, memory_model
from moorage.memory.draft import Draft
from moorage.memory.engine_setup import MemoryQuery
from moorage.memory.estimates import Term
from moorage.memory.need import CpuNeed, GroupMemory, MemoryPrediction, Need, StageMemory
from moorage.memory.options import MemoryOptions, MemorySettings
from moorage.memory.predict import predict_memory
from moorage.memory.spec_options import memory_options, wanted_concurrency
from moorage.models.source import TensorHeader

__all__ = [
    "CpuNeed",
    "Draft",
    "GroupMemory",
    "MemoryModel",
    "MemoryOptions",
    "MemoryPrediction",
    "MemoryQuery",
    "MemorySettings",
    "Need",
    "StageMemory",
    "TensorHeader",
    "Term",
    "memory_model",
    "memory_options",
    "predict_memory",
    "wanted_concurrency",
]
