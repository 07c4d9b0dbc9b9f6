"""Backend `vllm` of the Triton image of the tests: the contract of NVIDIA's, without a GPU.

Files, inputs, outputs, errors and order of checks are those of the official backend. Only the text
is made here: words that follow from the prompt and the model, one every `SECONDS`. A request for
`DIE` kills the engine, and the server goes on.
"""

import hashlib
import json
import locale
import os
import threading
import time

import numpy
import triton_python_backend_utils as pb_utils

SECONDS = 0.02
DIE = "die"
WORDS = ("anchor", "buoy", "cleat", "dock", "ebb", "fender", "gale", "hull")
FIELDS = os.path.join(os.path.dirname(__file__), "fields.json")
"""Names of all that vLLM's `AsyncEngineArgs` takes."""

INPUTS = {
    "text_input": ("TYPE_STRING", [1], False),
    "image": ("TYPE_STRING", [-1], True),
    "stream": ("TYPE_BOOL", [1], True),
    "sampling_parameters": ("TYPE_STRING", [1], True),
    "exclude_input_in_output": ("TYPE_BOOL", [1], True),
    "return_finish_reason": ("TYPE_BOOL", [1], True),
    "return_cumulative_logprob": ("TYPE_BOOL", [1], True),
    "return_logprobs": ("TYPE_BOOL", [1], True),
    "return_num_input_tokens": ("TYPE_BOOL", [1], True),
    "return_num_output_tokens": ("TYPE_BOOL", [1], True),
    "embedding_request": ("TYPE_STRING", [1], True),
}
OUTPUTS = {
    "text_output": ("TYPE_STRING", [-1]),
    "finish_reason": ("TYPE_STRING", [-1]),
    "cumulative_logprob": ("TYPE_FP32", [-1]),
    "logprobs": ("TYPE_STRING", [-1]),
    "num_input_tokens": ("TYPE_UINT32", [1]),
    "num_output_tokens": ("TYPE_UINT32", [-1]),
}
TYPES = {
    "temperature": float,
    "max_tokens": int,
    "seed": int,
    "top_p": float,
    "n": int,
    "logprobs": int,
    "ignore_eos": bool,
    "lora_name": str,
}
"""Sampling parameters, and what they are made of."""


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        there = config.as_dict()
        inputs = {one["name"] for one in there["input"]}
        outputs = {one["name"] for one in there["output"]}
        for name, (kind, dims, optional) in INPUTS.items():
            if name not in inputs:
                config.add_input(
                    {"name": name, "data_type": kind, "dims": dims, "optional": optional}
                )
        for name, (kind, dims) in OUTPUTS.items():
            if name not in outputs:
                config.add_output({"name": name, "data_type": kind, "dims": dims})
        config.set_model_transaction_policy({"decoupled": True})
        config.set_max_batch_size(0)
        return config

    def initialize(self, args):
        locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
        self.name, self.version = args["model_name"], args["model_version"]
        self.parameters = json.loads(args["model_config"])["parameters"]
        folder = pb_utils.get_model_dir()
        self.arguments = read(folder, "model.json")
        require_devices(args["model_instance_kind"], self.arguments)
        self.adapters = adapters_of(folder, self.arguments)
        with open(FIELDS, encoding="utf-8") as file:
            known = json.load(file)
        unknown = [name for name in self.arguments if name not in known]
        if unknown:
            raise TypeError(f"__init__() got an unexpected keyword argument '{unknown[0]}'")
        if not os.path.isfile(os.path.join(self.arguments["model"], "config.json")):
            raise ValueError(f"Invalid repository ID or local directory: {self.arguments['model']}")
        self.is_healthy, self.ending, self.going = True, False, 0
        self.lock = threading.Lock()
        self.counters = self.metrics() if self.is_on("REPORT_CUSTOM_METRICS") else {}

    def is_on(self, name):
        return self.parameters.get(name, {}).get("string_value", "").lower() == "true"

    def metrics(self):
        labels = {"model": self.name, "version": self.version}
        self.families = {
            name: pb_utils.MetricFamily(
                name=f"vllm:{name}_tokens_total",
                description=f"Number of {name} tokens processed.",
                kind=pb_utils.MetricFamily.COUNTER,
            )
            for name in ("prompt", "generation")
        }
        return {name: one.Metric(labels=labels) for name, one in self.families.items()}

    def execute(self, requests):
        if self.is_on("ENABLE_VLLM_HEALTH_CHECK") and not self.is_healthy:
            pb_utils.unload_model(self.name)
            for request in requests:
                error = pb_utils.TritonError(
                    "Model is unavailable due to unhealthy vLLM engine",
                    pb_utils.TritonError.UNAVAILABLE,
                )
                send(request.get_response_sender(), pb_utils.InferenceResponse(error=error))
            return
        for request in requests:
            with self.lock:
                self.going += 1
            threading.Thread(target=self.answer, args=(request,)).start()

    def answer(self, request):
        sender = request.get_response_sender()
        try:
            self.generate(request, sender)
        except Exception as error:
            text = [pb_utils.Tensor("text_output", numpy.array(["N/A"], dtype=object))]
            problem = pb_utils.TritonError(f"Error generating stream: {error}")
            send(sender, pb_utils.InferenceResponse(output_tensors=text, error=problem))
        finally:
            with self.lock:
                self.going -= 1

    def generate(self, request, sender):
        prompt = value(request, "text_input", b"").decode()
        sampling = parameters_of(request)
        name = (sampling or {}).get("lora_name", "")
        if problem := lora_problem(name, self.adapters):
            error = pb_utils.InferenceResponse(error=pb_utils.TritonError(problem))
            return send(sender, error)
        stream = bool(value(request, "stream", False))
        excludes = value(request, "exclude_input_in_output", None)
        if stream and excludes is not None and not excludes:
            raise ValueError("When streaming, `exclude_input_in_output` = False is not allowed.")
        if sampling is None:
            raise AttributeError("'NoneType' object has no attribute 'lora_name'")
        if prompt == DIE:
            self.is_healthy = False
        if not self.is_healthy:
            raise RuntimeError("EngineCore encountered an issue.")
        return self.send_words(request, sender, prompt, name, sampling, stream, excludes)

    def send_words(self, request, sender, prompt, adapter, sampling, stream, excludes):
        number = sampling.get("max_tokens", 16)
        words = words_of(f"{adapter}{prompt}", number)
        self.count("prompt", len(prompt.split()))
        sent, last = [], number - 1
        for at, word in enumerate(words):
            time.sleep(SECONDS)
            if request.is_cancelled():
                pb_utils.Logger.log_info("[vllm] Cancelling the request")
                pb_utils.Logger.log_info("[vllm] Successfully cancelled the request")
                if stream:
                    error = pb_utils.TritonError(
                        "Request was cancelled", pb_utils.TritonError.CANCELLED
                    )
                    return send(sender, pb_utils.InferenceResponse(error=error))
                break
            self.count("generation", 1)
            sent.append(word)
            if stream:
                reason = "length" if at == last else "None"
                response = made(request, prompt, f" {word}", 1, reason)
                send(sender, response, final=at == last)
        if not stream:
            text = "".join(f" {word}" for word in sent)
            whole = text if excludes else f"{prompt}{text}"
            send(sender, made(request, prompt, whole, len(sent), "length"))
        return None

    def count(self, name, number):
        if name in self.counters:
            self.counters[name].increment(number)

    def finalize(self):
        while self.going > 0:
            pb_utils.Logger.log_info(f"[vllm] Awaiting remaining {self.going} requests")
            time.sleep(0.2)
        pb_utils.Logger.log_info("[vllm] Shutdown complete")


def read(folder, name):
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        raise AssertionError(f"'{name}' containing vllm engine args must be provided in '{folder}'")
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def require_devices(kind, arguments):
    ranks = arguments.get("tensor_parallel_size", 1) * arguments.get("pipeline_parallel_size", 1)
    if kind == "GPU" and ranks > 1:
        raise ValueError(
            "KIND_GPU is currently for single-GPU models, please specify KIND_MODEL in the model's"
            " config.pbtxt for multi-GPU models"
        )


def adapters_of(folder, arguments):
    """Names of the adapters; None where LoRA is off."""
    if str(arguments.get("enable_lora", False)).lower() != "true":
        return None
    path = os.path.join(folder, "multi_lora.json")
    if not os.path.isfile(path):
        raise FileNotFoundError(f"Triton backend cannot find {path}.")
    with open(path, encoding="utf-8") as file:
        known = json.load(file)
    for place in known.values():
        if not os.path.isfile(os.path.join(place, "adapter_config.json")):
            raise ValueError(f"Loading lora {place} failed: No adapter found")
    return list(known)


def lora_problem(name, adapters):
    if not name:
        return ""
    if adapters is None:
        return "LoRA feature is not enabled."
    if name not in adapters:
        return f"LoRA {name} is not supported, we currently support {adapters}"
    return ""


def parameters_of(request):
    """Sampling parameters; None where one is none, which only the log says."""
    written = value(request, "sampling_parameters", None)
    given = json.loads(written.decode() if written is not None else request.parameters())
    try:
        return {name: TYPES[name](stated) for name, stated in given.items()}
    except Exception as error:
        pb_utils.Logger.log_error(f"[vllm] Was trying to create SamplingParams: {error!r}")
        return None


def value(request, name, default):
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    return default if tensor is None else tensor.as_numpy().flatten()[0]


def words_of(seed, number):
    digest = hashlib.sha256(seed.encode()).digest()
    return [WORDS[digest[at % 32] % len(WORDS)] for at in range(number)]


def made(request, prompt, text, number, reason):
    """A response with the text, and what the request asked for beside it."""
    extra = {
        "return_finish_reason": ("finish_reason", [reason], object),
        "return_cumulative_logprob": ("cumulative_logprob", [-1.0 * number], numpy.float32),
        "return_logprobs": ("logprobs", ["null"], object),
        "return_num_input_tokens": ("num_input_tokens", [len(prompt.split())], numpy.uint32),
        "return_num_output_tokens": ("num_output_tokens", [number], numpy.uint32),
    }
    tensors = [pb_utils.Tensor("text_output", numpy.array([text], dtype=object))]
    for switch, (name, content, kind) in extra.items():
        if value(request, switch, False):
            tensors.append(pb_utils.Tensor(name, numpy.array(content, dtype=kind)))
    return pb_utils.InferenceResponse(output_tensors=tensors)


def send(sender, response, final=True):
    flag = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL if final else 0
    sender.send(response, flags=flag)
