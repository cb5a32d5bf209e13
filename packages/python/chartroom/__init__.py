"""A client of Chartroom: calls over HTTP or gRPC, retries, pages and streams that resume."""

from .client import Client
from .errors import ApiError, Violation

__all__ = ["ApiError", "Client", "Violation"]
