"""Calls with retries, pages, and streams that resume, over any transport."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf.message import Message

from .errors import ApiError
from .operation import Operation, Transport
from .places import PLACES
from .retries import is_temporary, pause_after

# A stream that was open for this long has reached the server, even if it received nothing.
_REACHED_SECONDS = 5.0
_PAGE_SIZE = 100

GivenRequest = Message | Mapping[str, Any] | None


class Caller:
    """Makes the calls of one client."""

    def __init__(self, transport: Transport, timeout: float, retry_for: float) -> None:
        self._transport = transport
        self._timeout = timeout
        self._retry_for = retry_for

    def unary(
        self,
        operation: Operation,
        given: GivenRequest,
        timeout: float | None,
        idempotency_key: str | None,
    ) -> Any:
        """Returns the response of an operation, and retries the call when that may help."""
        request = operation.request_of(given)
        headers = {}
        if operation.has_effect:
            # Every attempt has the same key, so that an attempt without a response is not executed twice.
            headers["idempotency-key"] = idempotency_key or str(uuid.uuid4())
        began = time.monotonic()
        end = began + (self._timeout if timeout is None else timeout)
        failures = 0
        while True:
            try:
                return self._transport.unary(operation, request, headers, end - time.monotonic())
            except ApiError as error:
                failures += 1
                pause = pause_after(error, failures)
                if not is_temporary(error) or time.monotonic() + pause > min(end, began + self._retry_for):
                    raise
            time.sleep(pause)

    def pages(self, operation: Operation, given: GivenRequest, timeout: float | None) -> Iterator[Any]:
        """Yields the pages of a list, from the one that the request names, with 100 entries by default."""
        request = operation.request_of(given)
        if request.pagination.page_size == 0:
            request.pagination.page_size = _PAGE_SIZE
        while True:
            page = self.unary(operation, request, timeout, None)
            yield page
            if not page.pagination.next_token:
                return
            request.pagination.token = page.pagination.next_token

    def items(
        self, operation: Operation, given: GivenRequest, timeout: float | None, field: str
    ) -> Iterator[Any]:
        """Yields the entries of all pages of a list."""
        for page in self.pages(operation, given, timeout):
            yield from getattr(page, field)

    def stream(self, operation: Operation, given: GivenRequest) -> Iterator[Any]:
        """Yields the messages of a stream, which resumes after the last one when it is interrupted."""
        place = PLACES[operation.path](operation.request_of(given))
        failures = 0
        failing_since = 0.0
        while True:
            opened = math.inf
            try:
                messages = self._transport.stream(operation, place.next_request(), {})
                opened = time.monotonic()
                for message in messages:
                    before = place.position()
                    new = place.take(message)
                    if place.position() != before:
                        failures = 0
                    if new is not None:
                        yield new
                if place.is_complete():
                    return
                interruption = ApiError("unavailable", "the stream has ended early")
            except ApiError as error:
                if not is_temporary(error):
                    raise
                interruption = error
            now = time.monotonic()
            if failures == 0 or now - opened > _REACHED_SECONDS:
                failures, failing_since = 0, now
            failures += 1
            pause = pause_after(interruption, failures)
            if now + pause > failing_since + self._retry_for:
                raise interruption
            time.sleep(pause)
