"""Decides when a call is retried, and after which delay."""

from __future__ import annotations

import random

from .errors import UNSPECIFIED, ApiError

_FIRST_PAUSE_SECONDS = 0.25
_LONGEST_PAUSE_SECONDS = 5.0


def is_temporary(error: ApiError) -> bool:
    """Returns whether a retry may succeed: no response, a busy server, or too many calls."""
    if error.reason == UNSPECIFIED:
        # An error of the connection or of a proxy.
        return error.code == "unavailable"
    return error.reason in ("UNAVAILABLE", "TOO_MANY_CALLS")


def pause_after(error: ApiError, failures: int) -> float:
    """Returns the seconds to wait after a number of failures in a row, at least those that the server asks for."""
    whole = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2 ** min(failures - 1, 16))
    asked = float(error.metadata.get("retry_after_seconds", 0))
    return max(asked, whole * random.uniform(0.5, 1.0))
