"""Errors of calls, with the reasons of the catalogue error_reason.proto."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .error_parts_pb2 import Violations
from .service.v1.error_reason_pb2 import ErrorDetail, ErrorReason

_PREFIX = "ERROR_REASON_"
UNSPECIFIED = "UNSPECIFIED"


@dataclass(frozen=True)
class Violation:
    """A rule of the contract that a request breaks."""

    field: str
    """The path of the field in the request, such as `triggers[0].time.time_zone`."""
    rule: str
    """The id of the rule, such as `string.uuid`."""
    message: str


@dataclass(eq=False)
class ApiError(Exception):
    """A call that failed."""

    code: str
    """The kind of error, such as `not_found`; `unavailable` also when there was no response."""
    message: str
    """A message for a person."""
    reason: str = UNSPECIFIED
    """The reason of the catalogue without its prefix, such as `NOT_FOUND`; `UNSPECIFIED` when no server gave one."""
    metadata: dict[str, str] = field(default_factory=dict)
    """Facts about the failure, with the keys that the catalogue names for the reason."""
    violations: list[Violation] = field(default_factory=list)
    """The first 20 rules that the request breaks."""
    request_id: str = ""
    """The id of the call in the server's log; empty when there was no response."""

    def __str__(self) -> str:
        return f"{self.message} ({self.code}, {self.reason})"


def read_error(
    code: str, message: str, details: Iterable[tuple[str, bytes]], request_id: str = ""
) -> ApiError:
    """Returns the error with these details, each the full name of a message and its bytes."""
    error = ApiError(code, message, request_id=request_id)
    for name, data in details:
        if name == "service.v1.ErrorDetail":
            detail = ErrorDetail.FromString(data)
            error.metadata.update(detail.metadata)
            # A newer server may have reasons that this client does not know: use their number.
            is_known = detail.reason in ErrorReason.values()
            error.reason = ErrorReason.Name(detail.reason).removeprefix(_PREFIX) if is_known else str(detail.reason)
        elif name == "buf.validate.Violations":
            for each in Violations.FromString(data).violations:
                error.violations.append(Violation(_path(each.field.elements), each.rule_id, each.message))
    return error


def _path(elements) -> str:
    path = ""
    for element in elements:
        path += ("." if path else "") + element.field_name
        subscript = element.WhichOneof("subscript")
        if subscript == "string_key":
            path += f'["{element.string_key}"]'
        elif subscript == "bool_key":
            path += "[true]" if element.bool_key else "[false]"
        elif subscript:
            path += f"[{getattr(element, subscript)}]"
    return path
