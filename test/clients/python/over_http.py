"""Runs one scenario with plain HTTP and JSON and the standard library: over_http.py ADDRESS SCENARIO.

Prints one JSON object; the token is in the environment variable TOKEN.
"""

import gzip
import http.client
import json
import os
import struct
import sys
import urllib.error
import urllib.request

ADDRESS = sys.argv[1]
HEADERS = {
    "Authorization": f"Bearer {os.environ['TOKEN']}",
    "Content-Encoding": "gzip",
    "Accept-Encoding": "gzip",
    "Connect-Timeout-Ms": "60000",
}


class CallError(Exception):
    """An answer that is no success; `body` is the error as JSON."""

    def __init__(self, body):
        super().__init__(f"{body['code']}: {body.get('message', '')}")
        self.body = body


def plain(answer):
    """Returns the JSON of an answer, compressed or not."""
    data = answer.read()
    return json.loads(gzip.decompress(data) if answer.headers["Content-Encoding"] == "gzip" else data)


def call(operation, request):
    sent = urllib.request.Request(
        f"{ADDRESS}/api/service.v1.{operation}",
        data=gzip.compress(json.dumps(request).encode()),
        headers={**HEADERS, "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(sent, timeout=60) as answer:
            return plain(answer)
    except urllib.error.HTTPError as error:
        with error:
            raise CallError(plain(error)) from None


def messages(operation, request, timeout_ms=60_000):
    """Yields the messages of a stream; each has a byte of flags and its length in four before it."""
    body = json.dumps(request).encode()
    sent = urllib.request.Request(
        f"{ADDRESS}/api/service.v1.{operation}",
        data=struct.pack(">BI", 0, len(body)) + body,
        headers={
            "Authorization": HEADERS["Authorization"],
            "Content-Type": "application/connect+json",
            "Connect-Timeout-Ms": str(timeout_ms),
        },
    )
    with urllib.request.urlopen(sent, timeout=60) as answer:
        while True:
            head = answer.read(5)
            if len(head) < 5:
                raise ConnectionError("the stream ended without its last message")
            flags, length = struct.unpack(">BI", head)
            message = json.loads(answer.read(length))
            if flags & 2:
                raise CallError(message.get("error", {"code": "none"}))
            yield message


def create(name):
    initializer = {"specs": [{"git": {"remoteUri": f"https://git.example.org/team/{name}.git"}}]}
    return call("ProjectService/CreateProject", {"initializer": initializer})["project"]


def list_pages():
    """Walks five projects in pages of two."""
    for number in range(5):
        create(f"listed-{number}")
    pages, token = [], ""
    while True:
        answer = call("ProjectService/ListProjects", {
            "filter": {"search": "listed-"},
            "sort": {"field": "id"},
            "pagination": {"pageSize": 2, "token": token},
        })
        pages.append([each["metadata"]["name"] for each in answer["projects"]])
        token = answer["pagination"]["nextToken"]
        if not token:
            return {"pages": pages}


def refused():
    try:
        call("ProjectService/GetProject", {"projectId": "x"})
    except CallError as error:
        details = {each["type"]: each["debug"] for each in error.body["details"]}
        return {
            "code": error.body["code"],
            "reason": details["service.v1.ErrorDetail"]["reason"],
            "violations": [
                {
                    "field": ".".join(part["fieldName"] for part in each["field"]["elements"]),
                    "rule": each["ruleId"],
                }
                for each in details["buf.validate.Violations"]["violations"]
            ],
        }
    raise AssertionError("the server took a bad id")


def stream():
    """Watches until the connection is cut, and resumes after the last event that it has."""
    seen = []

    def watch(after):
        for event in messages("EventService/WatchEvents", {"afterSequence": after}):
            seen.append({"sequence": int(event["sequence"]), "resourceId": event["resourceId"]})
            yield event["resourceId"]

    first = create("first")["id"]
    opened = watch("0")
    while next(opened) != first:
        pass
    print("watching", flush=True)
    try:
        for _ in opened:
            pass
    except (OSError, http.client.HTTPException) as error:
        cut = type(error).__name__
    second = create("second")["id"]
    for resource_id in watch(str(seen[-1]["sequence"])):
        if resource_id == second:
            return {"cut": cut, "events": seen, "projects": [first, second]}


def deadline():
    """Waits for events of the future for a moment only."""
    try:
        for _ in messages("EventService/WatchEvents", {}, timeout_ms=500):
            pass
    except CallError as error:
        return {"code": error.body["code"]}


def compression():
    """Sends and receives a workflow of 100,000 equal characters."""
    step = {"task": {"command": "a" * 20_000}}
    action = {"limits": {"maxParallel": 1, "maxTotal": 1}, "steps": [step] * 5}
    workflow = call("WorkflowService/CreateWorkflow", {"name": "Compressed", "action": action})["workflow"]
    return {"characters": sum(len(each["task"]["command"]) for each in workflow["spec"]["action"]["steps"])}


def unknown():
    """Reads an answer with fields that this program does not name."""
    metadata = create("older")["metadata"]
    return {"name": metadata["name"], "unknownFields": "updatedAt" in metadata}


SCENARIOS = {
    "create": lambda: {"name": create("created")["metadata"]["name"]},
    "list": list_pages,
    "error": refused,
    "stream": stream,
    "deadline": deadline,
    "compression": compression,
    "unknown": unknown,
}

print(json.dumps(SCENARIOS[sys.argv[2]]()))
