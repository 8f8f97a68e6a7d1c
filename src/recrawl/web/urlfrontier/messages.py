"""The messages of URLFrontier, as classes.

They are made from ``urlfrontier.binpb``, the compiled form of ``urlfrontier.proto``. Generated Python modules would
only run with the versions of protobuf that their generator allows; a compiled description runs with all of them.
``tools/protos`` compiles it again after a change.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from google.protobuf.descriptor import ServiceDescriptor

COMPILED = Path(__file__).with_name("urlfrontier.binpb")


class Method(NamedTuple):
    """A method of the service."""

    name: str
    request: Any
    """The class of a request."""
    response: Any
    takes_stream: bool
    gives_stream: bool


class Messages:
    """Every message by its name: ``messages.URLInfo(url=…)``; and the methods of the service."""

    def __init__(self) -> None:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

        files = descriptor_pb2.FileDescriptorSet.FromString(COMPILED.read_bytes())
        pool = descriptor_pool.DescriptorPool()  # our own: other packages may bring the same messages
        for file in files.file:
            pool.Add(file)
        [file] = files.file
        self._classes = {
            message.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.{message.name}"))
            for message in file.message_type
        }
        service: ServiceDescriptor = pool.FindServiceByName(f"{file.package}.{file.service[0].name}")
        self.service: str = service.full_name
        self.methods = tuple(
            Method(
                method.name,
                self._classes[method.input_type.name],
                self._classes[method.output_type.name],
                bool(method.client_streaming),
                bool(method.server_streaming),
            )
            for method in service.methods
        )

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a class that protobuf makes
        """The class of a message."""
        try:
            return self._classes[name]
        except KeyError:
            raise AttributeError(name) from None


@cache
def messages() -> Messages:
    """The messages, made once."""
    return Messages()
