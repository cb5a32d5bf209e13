"""Operations of the contract, and the transports that call them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from google.protobuf.message import Message


@dataclass(frozen=True)
class Operation:
    """An operation: its path, such as `service.v1.ProjectService/GetProject`, and its messages."""

    path: str
    request: type[Message]
    response: type[Message]
    has_effect: bool
    """True when it may change something: its calls then have an idempotency key."""

    def request_of(self, given: Message | Mapping[str, Any] | None) -> Message:
        """Returns a copy of the caller's request, which may be a mapping of its fields."""
        if given is None:
            return self.request()
        if isinstance(given, self.request):
            copy = self.request()
            copy.CopyFrom(given)
            return copy
        if isinstance(given, Mapping):
            return self.request(**given)
        raise TypeError(f"{self.path} takes a {self.request.__name__} or a mapping of its fields")


class Transport(Protocol):
    """A protocol for calls. `unary` and `stream` raise ApiError."""

    def unary(
        self, operation: Operation, request: Message, headers: Mapping[str, str], timeout: float
    ) -> Message:
        """Makes one attempt of a call."""

    def stream(
        self, operation: Operation, request: Message, headers: Mapping[str, str]
    ) -> Iterator[Message]:
        """Waits until a stream has begun or failed; returns its messages until it ends or is interrupted."""

    def close(self) -> None:
        """Closes the connections."""
