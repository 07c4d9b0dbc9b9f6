"""How much accelerator memory vLLM will take for weights and KV cache: exact, before it starts.

The rules are those of vLLM 0.32. Everything follows from config.json and the tensor headers;
what the rules do not cover is a refusal with a reason, never zero bytes.
"""

from moorage.models.memory.asked import memory_options, wanted_concurrency
from moorage.models.memory.demand import MemoryModel, memory_model
from moorage.models.memory.draft import Draft
from moorage.models.memory.estimates import Term
from moorage.models.memory.need import CpuNeed, Need
from moorage.models.memory.options import MemoryOptions
from moorage.models.memory.predict import predict_memory
from moorage.models.memory.prediction import GroupMemory, MemoryPrediction, StageMemory
from moorage.models.memory.refusal import MemoryRefusal, RefusalKind
from moorage.models.memory.settings import MemorySettings
from moorage.models.tensors import TensorHeader

__all__ = [
    "CpuNeed",
    "Draft",
    "GroupMemory",
    "MemoryModel",
    "MemoryOptions",
    "MemoryPrediction",
    "MemoryRefusal",
    "MemorySettings",
    "Need",
    "RefusalKind",
    "StageMemory",
    "TensorHeader",
    "Term",
    "memory_model",
    "memory_options",
    "predict_memory",
    "wanted_concurrency",
]
