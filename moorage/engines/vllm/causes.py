"""Texts of vLLM's log that give away why a start failed, the most telling first.

The wordings are those of vLLM 0.32 and of what it runs on (torch, transformers, huggingface_hub),
with older ones where they differ. Numbers are matched as digits: a traceback shows the source line
of a message too, and that one holds placeholders.
"""

from __future__ import annotations

from moorage.engines.vllm.machine_causes import MACHINE_CAUSES
from moorage.engines.vllm.memory_causes import MEMORY_CAUSES
from moorage.engines.vllm.model_causes import MODEL_CAUSES
from moorage.engines.vllm.setting_causes import SETTING_CAUSES

LOG_CAUSES = (*MEMORY_CAUSES, *SETTING_CAUSES, *MODEL_CAUSES, *MACHINE_CAUSES)
