"""Calls over gRPC, with the package grpcio (`pip install chartroom-client[grpc]`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

import grpc
from google.protobuf.message import Message

from .error_parts_pb2 import Status
from .errors import ApiError, read_error
from .operation import Operation

# A page may have 4 MiB, which is the default limit of grpcio.
_MAX_MESSAGE_BYTES = 64 * 1024 * 1024
# The only code with a different spelling here.
_CODES = {grpc.StatusCode.CANCELLED: "canceled"}


class GrpcTransport:
    """Makes all calls over one connection. Usable from several threads."""

    def __init__(
        self, address: str, headers: Mapping[str, str], credentials: grpc.ChannelCredentials | None
    ) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("the address of a server is a URL such as https://chartroom.example.org")
        if parts.path.rstrip("/") not in ("", "/api"):
            raise ValueError("gRPC cannot use the path of an address: take the transport http")
        self._headers = {key.lower(): value for key, value in headers.items()}
        options = {
            "grpc.max_receive_message_length": _MAX_MESSAGE_BYTES,
            "grpc.keepalive_time_ms": 30_000,
            "grpc.keepalive_timeout_ms": 10_000,
            # The client's own retries have idempotency keys.
            "grpc.enable_retries": 0,
            # Bounds how long it takes to reconnect to a server that was down.
            "grpc.initial_reconnect_backoff_ms": 200,
            "grpc.max_reconnect_backoff_ms": 5_000,
            "grpc.primary_user_agent": self._headers.pop("user-agent"),
        }
        target = parts.netloc if parts.port else f"{parts.netloc}:{443 if parts.scheme == 'https' else 80}"
        pairs = list(options.items())
        if parts.scheme == "https":
            secure = credentials or grpc.ssl_channel_credentials()
            self._channel = grpc.secure_channel(target, secure, options=pairs)
        else:
            self._channel = grpc.insecure_channel(target, options=pairs)

    def unary(
        self, operation: Operation, request: Message, headers: Mapping[str, str], timeout: float
    ) -> Message:
        call = self._channel.unary_unary(
            f"/{operation.path}", operation.request.SerializeToString, operation.response.FromString
        )
        try:
            return call(request, timeout=max(timeout, 0.001), metadata=self._metadata(headers))
        except grpc.RpcError as error:
            raise _failure(error) from error

    def stream(self, operation: Operation, request: Message, headers: Mapping[str, str]) -> Iterator[Message]:
        opened = self._channel.unary_stream(
            f"/{operation.path}", operation.request.SerializeToString, operation.response.FromString
        )(request, metadata=self._metadata(headers))
        # Waits for the headers; without them, the first message raises the error.
        opened.initial_metadata()
        return self._messages(opened)

    def _messages(self, opened: grpc.Call) -> Iterator[Message]:
        try:
            yield from opened
        except grpc.RpcError as error:
            raise _failure(error) from error
        finally:
            opened.cancel()

    def close(self) -> None:
        self._channel.close()

    def _metadata(self, headers: Mapping[str, str]) -> list[tuple[str, str]]:
        return [*self._headers.items(), *headers.items()]


def _failure(error: grpc.RpcError) -> ApiError:
    metadata = dict([*(error.initial_metadata() or ()), *(error.trailing_metadata() or ())])
    status = Status.FromString(metadata.get("grpc-status-details-bin", b""))
    details = [(each.type_url.rpartition("/")[2], each.value) for each in status.details]
    request_id = metadata.get("x-request-id", "")
    return read_error(_CODES.get(error.code(), error.code().name.lower()), error.details() or "", details, request_id)
