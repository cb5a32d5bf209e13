"""The client of a server."""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import Any, Literal

from .caller import Caller
from .services import Services


class Client(Services):
    """Calls a server as the owner of a token; each service of the contract is an attribute.

    A client may be used from several threads, and is closed by `close` or at the end of a `with`.
    """

    def __init__(
        self,
        address: str,
        token: str,
        *,
        transport: Literal["http", "grpc"] = "http",
        timeout: float = 60.0,
        retry_for: float = 30.0,
        credentials: Any = None,
    ) -> None:
        """Creates a client, which connects at its first call.

        `address` is the server's, such as `https://chartroom.example.org`. `timeout` is how many seconds
        a call may take, including retries; streams have no timeout. `retry_for` is how many seconds a failing
        call or stream is retried: 0 tries once, `math.inf` never gives up. `credentials` is for a server whose
        certificate the machine does not trust: an `ssl.SSLContext`, or for gRPC what
        `grpc.ssl_channel_credentials` returns.
        """
        if not re.fullmatch(r"[\x21-\x7e]*", token):
            raise ValueError("the token has characters that no token has, such as the end of a line")
        headers = {
            "Authorization": f"Bearer {token}",
            "User-Agent": f"chartroom-python/{version('chartroom-client')}",
        }
        if transport == "grpc":
            from .grpc_transport import GrpcTransport

            self._transport = GrpcTransport(address, headers, credentials)
        elif transport == "http":
            from .http_transport import HttpTransport

            self._transport = HttpTransport(address, headers, credentials)
        else:
            raise ValueError("the transports are http and grpc")
        super().__init__(Caller(self._transport, timeout, retry_for))

    def close(self) -> None:
        """Closes the connections. Open calls end with an error."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
