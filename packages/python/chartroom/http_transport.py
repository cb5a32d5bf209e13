"""Calls as JSON over HTTP/1.1, with the standard library."""

from __future__ import annotations

import base64
import http.client
import json
import selectors
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from google.protobuf import json_format
from google.protobuf.message import Message

from .errors import ApiError, read_error
from .operation import Operation

# The server sends something every 15 seconds: after this much silence the connection is lost.
_SILENCE_SECONDS = 40.0
# A response at the deadline says more than the client's own timeout.
_GRACE_SECONDS = 1.0
_CONNECT_SECONDS = 10.0
# A server closes connections that are idle for 60 seconds. A call at that moment would fail.
_IDLE_SECONDS = 30.0


class HttpTransport:
    """Keeps connections open between calls. Usable from several threads."""

    def __init__(self, address: str, headers: Mapping[str, str], tls: ssl.SSLContext | None) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("the address of a server is a URL such as https://chartroom.example.org")
        self._host, self._port = parts.hostname, parts.port
        self._tls = (tls or ssl.create_default_context()) if parts.scheme == "https" else None
        self._prefix = parts.path.rstrip("/").removesuffix("/api") + "/api/"
        self._headers = {**headers, "Content-Type": "application/json"}
        # Each with the time since which it is idle, the most recent last.
        self._idle: list[tuple[http.client.HTTPConnection, float]] = []
        self._lock = threading.Lock()

    def unary(
        self, operation: Operation, request: Message, headers: Mapping[str, str], timeout: float
    ) -> Message:
        if timeout <= 0:
            raise ApiError("deadline_exceeded", "the deadline of the call has passed")
        connection = self._take()
        try:
            deadline = {"Connect-Timeout-Ms": str(max(1, int(timeout * 1000)))}
            response = self._send(connection, operation, request, {**headers, **deadline}, timeout + _GRACE_SECONDS)
            body = response.read()
        except TimeoutError as error:
            connection.close()
            raise ApiError("deadline_exceeded", "no answer came before the deadline of the call") from error
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise _cut(error) from error
        self._give_back(connection, response)
        if response.status != 200:
            raise _failure(response, body)
        return json_format.Parse(body, operation.response(), ignore_unknown_fields=True)

    def stream(self, operation: Operation, request: Message, headers: Mapping[str, str]) -> Iterator[Message]:
        connection = self._open()
        try:
            accept = {"Accept": "application/x-ndjson"}
            response = self._send(connection, operation, request, {**headers, **accept}, _SILENCE_SECONDS)
            if response.status != 200:
                raise _failure(response, response.read())
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise _cut(error) from error
        except BaseException:
            connection.close()
            raise
        return self._messages(connection, response, operation)

    def _messages(
        self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse, operation: Operation
    ) -> Iterator[Message]:
        try:
            # Before the first chunk, a lost connection looks like the end of the chunks.
            if response.chunked and not response.fp.peek(1):
                raise http.client.IncompleteRead(b"")
            while line := response.readline():
                if not line.strip():
                    continue
                if not line.endswith(b"\n"):
                    raise http.client.IncompleteRead(line)
                content = json.loads(line)
                if "error" in content:
                    raise _error_of(content["error"], response.headers.get("X-Request-Id", ""))
                yield json_format.ParseDict(content, operation.response(), ignore_unknown_fields=True)
            # When the connection is lost, `readline` returns what it has: only the missing rest of the chunk, or of the
            # length, shows it.
            is_complete = response.chunk_left is None if response.chunked else response.length == 0
            if not is_complete:
                raise http.client.IncompleteRead(b"")
        except (OSError, http.client.HTTPException) as error:
            raise _cut(error) from error
        finally:
            connection.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            connection.close()

    def _send(
        self,
        connection: http.client.HTTPConnection,
        operation: Operation,
        request: Message,
        headers: Mapping[str, str],
        patience: float,
    ) -> http.client.HTTPResponse:
        if connection.sock is None:
            connection.timeout = min(patience, _CONNECT_SECONDS)
            try:
                connection.connect()
            except ssl.SSLCertVerificationError as error:
                # A retry would get the same certificate.
                connection.close()
                raise ApiError("unknown", f"the certificate of the server is not trusted: {error}") from error
            except TimeoutError as error:
                raise ConnectionError("no connection within the time for it") from error
        connection.sock.settimeout(patience)
        body = json_format.MessageToJson(request, indent=None).encode()
        connection.request("POST", self._prefix + operation.path, body, {**self._headers, **headers})
        return connection.getresponse()

    def _open(self) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port)
        return http.client.HTTPSConnection(self._host, self._port, context=self._tls)

    def _take(self) -> http.client.HTTPConnection:
        with self._lock:
            while self._idle:
                connection, idle_since = self._idle.pop()
                if time.monotonic() - idle_since < _IDLE_SECONDS and not _has_ended(connection):
                    return connection
                connection.close()
        return self._open()

    def _give_back(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        if response.will_close:
            connection.close()
            return
        with self._lock:
            self._idle.append((connection, time.monotonic()))


def _has_ended(connection: http.client.HTTPConnection) -> bool:
    """Returns whether an idle connection has something to read, which is its end."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection.sock, selectors.EVENT_READ)
        return bool(selector.select(0))


def _cut(error: Exception) -> ApiError:
    return ApiError("unavailable", f"the server cannot be reached: {error or type(error).__name__}")


def _failure(response: http.client.HTTPResponse, body: bytes) -> ApiError:
    request_id = response.headers.get("X-Request-Id", "")
    try:
        return _error_of(json.loads(body), request_id)
    except (ValueError, KeyError, TypeError, AttributeError):
        # A page of a proxy. When it says that the server is down, the call may be retried.
        code = "unavailable" if response.status in (429, 502, 503, 504) else "unknown"
        return ApiError(code, f"HTTP {response.status} {response.reason}", request_id=request_id)


def _error_of(content: dict, request_id: str) -> ApiError:
    details = [
        (each["type"], base64.b64decode(each["value"] + "=" * (-len(each["value"]) % 4)))
        for each in content.get("details", [])
    ]
    return read_error(content["code"], content.get("message", ""), details, request_id)
