"""A client for Triton's gRPC: streams of answers, made of the few messages that they need."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto
SERVICE = "/inference.GRPCInferenceService"
TENSOR = (
    ("name", 1, _Field.TYPE_STRING, False, ""),
    ("datatype", 2, _Field.TYPE_STRING, False, ""),
    ("shape", 3, _Field.TYPE_INT64, True, ""),
)
MESSAGES: dict[str, tuple[tuple[str, int, int, bool, str], ...]] = {
    "Tensor": TENSOR,
    "Request": (
        ("model_name", 1, _Field.TYPE_STRING, False, ""),
        ("id", 3, _Field.TYPE_STRING, False, ""),
        ("inputs", 5, _Field.TYPE_MESSAGE, True, ".t.Tensor"),
        ("raw_input_contents", 7, _Field.TYPE_BYTES, True, ""),
    ),
    "Response": (
        ("outputs", 5, _Field.TYPE_MESSAGE, True, ".t.Tensor"),
        ("raw_output_contents", 6, _Field.TYPE_BYTES, True, ""),
    ),
    "StreamResponse": (
        ("error_message", 1, _Field.TYPE_STRING, False, ""),
        ("infer_response", 2, _Field.TYPE_MESSAGE, False, ".t.Response"),
    ),
    "Nothing": (),
}
"""Parts of `grpc_service.proto` of Triton's KServe protocol, by their numbers."""


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for label, number, kind, many, of in fields:
            message.field.add(
                name=label,
                number=number,
                type=kind,
                label=_Field.LABEL_REPEATED if many else _Field.LABEL_OPTIONAL,
                type_name=of or None,
            )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindFileByName("t.proto")
    return {
        name: message_factory.GetMessageClass(found.message_types_by_name[name])
        for name in MESSAGES
    }


CLASSES = _classes()


class TritonStream:
    """One request whose answers stream; closing it early cancels it."""

    def __init__(self, address: str, model: str, inputs: dict[str, tuple[str, bytes]]) -> None:
        self._channel = grpc.insecure_channel(address)
        method = self._channel.stream_stream(
            f"{SERVICE}/ModelStreamInfer",
            request_serializer=CLASSES["Request"].SerializeToString,
            response_deserializer=CLASSES["StreamResponse"].FromString,
        )
        self._requests: queue.Queue[Any] = queue.Queue()
        tensors = [
            CLASSES["Tensor"](name=name, datatype=kind, shape=[1])
            for name, (kind, _) in inputs.items()
        ]
        raw = [content for _, content in inputs.values()]
        self._requests.put(
            CLASSES["Request"](model_name=model, inputs=tensors, raw_input_contents=raw)
        )
        self._call = method(iter(self._requests.get, None), timeout=60)

    def __iter__(self) -> Iterator[str]:
        """The texts, as they come; raises `RuntimeError` with an error of the server."""
        for answer in self._call:
            if answer.error_message:
                raise RuntimeError(answer.error_message)
            response = answer.infer_response
            for tensor, raw in zip(response.outputs, response.raw_output_contents, strict=False):
                if tensor.name == "text_output":
                    yield raw[4:].decode()

    def end(self) -> None:
        """Say that no other request follows."""
        self._requests.put(None)

    def cancel(self) -> None:
        """Give up."""
        self._call.cancel()
        self._channel.close()


def text(content: str) -> tuple[str, bytes]:
    """A text as a tensor of one element."""
    data = content.encode()
    return "BYTES", len(data).to_bytes(4, "little") + data


def switch(value: bool) -> tuple[str, bytes]:
    """A truth value as a tensor of one element."""
    return "BOOL", bytes([value])
