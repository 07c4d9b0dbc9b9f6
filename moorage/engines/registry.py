"""The table of engines."""

from moorage.engines.base import Engine
from moorage.engines.custom import Custom
from moorage.engines.llama_cpp.engine import LlamaCpp
from moorage.engines.sglang.engine import Sglang
from moorage.engines.transformers.engine import Transformers
from moorage.engines.triton.engine import Triton
from moorage.engines.vllm.engine import Vllm
from moorage.spec import EngineName

ENGINES: dict[EngineName, Engine] = {
    engine.name: engine
    for engine in (Vllm(), Transformers(), LlamaCpp(), Sglang(), Triton(), Custom())
}
