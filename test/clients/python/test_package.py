"""Tests the package of the wheel against servers that behave badly: python3 -m unittest test_package."""

import contextlib
import itertools
import json
import math
import socket
import ssl
import threading
import time
import unittest
from unittest import mock

from chartroom import ApiError, Client
from chartroom.http_transport import HttpTransport

LINE = json.dumps({"attempt": 1, "offset": "0", "data": "YWJj"}).encode() + b"\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n"
EMPTY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


@contextlib.contextmanager
def serving(*answers):
    """Serves the last answer again and again, each on a connection of its own; yields the address and the requests."""
    listener = socket.create_server(("127.0.0.1", 0))
    requests = []

    def serve():
        for answer in itertools.chain(answers, itertools.repeat(answers[-1])):
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as sent:
                # The whole request: what is not read makes the end a reset, which may overtake the answer.
                headers = dict(line.split(b": ") for line in list(iter(sent.readline, b"\r\n"))[1:])
                sent.read(int(headers[b"Content-Length"]))
                requests.append(headers)
                connection.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", requests
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def chunk(data):
    return b"%x\r\n%b\r\n" % (len(data), data)


class StreamsTest(unittest.TestCase):
    def read(self, *answers):
        with serving(*answers) as (address, requests), Client(address, "token", retry_for=1) as client:
            pieces = list(client.workflow.stream_action_logs({"workflow_execution_action_id": "x"}))
            return b"".join(piece.data for piece in pieces), len(requests)

    def test_a_log_goes_on_until_its_end_was_seen(self):
        chunked = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
        whole = chunked + chunk(LINE) + b"0\r\n\r\n"
        length = HEAD + b"Content-Length: %d\r\n\r\n"
        for cut in (
            HEAD + b"\r\n" + LINE,
            HEAD + b"\r\n",
            chunked,
            chunked + chunk(LINE),
            chunked + chunk(LINE[:5]),
            chunked + chunk(LINE)[:20],
            length % 99 + LINE,
            length % 99,
        ):
            with self.subTest(cut=cut):
                self.assertEqual(self.read(cut, whole), (b"abc", 2))
        self.assertEqual(self.read(whole), (b"abc", 1))
        self.assertEqual(self.read(chunked + b"0\r\n\r\n"), (b"", 1))
        self.assertEqual(self.read(length % len(LINE) + LINE), (b"abc", 1))

    def test_a_stream_is_given_up_that_is_always_cut_behind_the_run(self):
        run = HEAD + b"\r\n" + json.dumps({"agentExecution": {}}).encode() + b"\n"
        with serving(run) as (address, requests), Client(address, "token", retry_for=1) as client:
            with self.assertRaises(ApiError) as raised:
                for _ in client.agent.watch_agent_execution({"agent_execution_id": "x"}):
                    self.assertLess(len(requests), 20)
        self.assertEqual(raised.exception.code, "unavailable")

    def test_a_stream_is_given_up_where_connecting_is_slow(self):
        attempts = []

        def fail(*_):
            attempts.append(time.monotonic())
            self.assertLess(len(attempts), 4)
            now.return_value += 6
            raise ApiError("unavailable", "no connection within the time for it")

        with (
            mock.patch.object(HttpTransport, "stream", fail),
            mock.patch("chartroom.caller.time.monotonic", return_value=0.0) as now,
            Client("http://127.0.0.1:1", "token", retry_for=1) as client,
            self.assertRaises(ApiError),
        ):
            next(client.event.watch_events())


class CallsTest(unittest.TestCase):
    def test_a_connection_that_the_server_has_ended_is_not_used_again(self):
        with serving(EMPTY) as (address, requests), Client(address, "token", retry_for=0) as client:
            for _ in range(3):
                client.project.list_projects()
                # The end of the connection has come when there is something to read.
                [(kept, _)] = client._transport._idle
                kept.sock.recv(1, socket.MSG_PEEK)
            self.assertEqual(len(requests), 3)

    def test_a_token_that_no_header_can_carry_is_not_shown(self):
        for transport in ("http", "grpc"):
            with self.assertRaises(ValueError) as raised:
                Client("http://127.0.0.1:1", "hidden\n", transport=transport)
            self.assertNotIn("hidden", str(raised.exception))

    def test_a_bad_certificate_is_not_tried_again(self):
        attempts = []

        def fail(*_, **__):
            attempts.append(1)
            raise ssl.SSLCertVerificationError("self-signed certificate")

        with (
            mock.patch("http.client.HTTPSConnection.connect", fail),
            Client("https://127.0.0.1:1", "token", retry_for=math.inf, timeout=5) as client,
            self.assertRaises(ApiError) as raised,
        ):
            client.project.list_projects()
        self.assertEqual((raised.exception.code, len(attempts)), ("unknown", 1))


if __name__ == "__main__":
    unittest.main()
