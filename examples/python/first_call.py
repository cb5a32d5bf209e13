"""A first call over plain HTTP and JSON, with only Python's standard library.

    TOKEN=cr_pat_... python3 examples/python/first_call.py [address]

Creates three projects in one call, one of them invalid on purpose, lists them page
by page, and handles an error by its reason.
"""

import json
import os
import sys
import urllib.error
import urllib.request

ADDRESS = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"


class CallError(Exception):
    """An error response; `reason` is a name of the enum ErrorReason."""

    def __init__(self, body):
        super().__init__(f"{body['code']}: {body['message']}")
        details = {detail["type"]: detail["debug"] for detail in body["details"]}
        self.reason = details["service.v1.ErrorDetail"]["reason"]


def call(operation, request):
    """Calls an operation, such as "ProjectService/GetProject"; returns its response or raises CallError."""
    sent = urllib.request.Request(
        f"{ADDRESS}/api/service.v1.{operation}",
        data=json.dumps(request).encode(),
        headers={
            "Authorization": f"Bearer {os.environ['TOKEN']}",
            "Content-Type": "application/json",
            "Connect-Timeout-Ms": "5000",
        },
    )
    try:
        with urllib.request.urlopen(sent, timeout=10) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            raise CallError(json.load(error)) from None


def projects_found(search):
    """Yields every project with this text in its name, page after page, in the order of creation."""
    token = ""
    while True:
        page = call("ProjectService/ListProjects", {
            "filter": {"search": search},
            "sort": {"field": "id"},
            "pagination": {"pageSize": 1, "token": token},
        })
        yield from page["projects"]
        token = page["pagination"]["nextToken"]
        if not token:
            return


def git(remote_uri):
    return {"specs": [{"git": {"remoteUri": remote_uri}}]}


api = {"initializer": git("https://git.example.org/team/first-call-api.git")}
web = {"initializer": git("https://git.example.org/team/first-call-web.git")}
bad = {**web, "name": "first-call-bad", "devcontainerFilePath": "/absolute"}

created = call("ProjectService/CreateProjects", {"projects": [api, bad, web]})
print("created:", ", ".join(project["metadata"]["name"] for project in created["createdProjects"]))
for failure in created["failedProjects"]:
    print(f"failed: element {failure['index']}, {failure['name']}: {failure['error']}")
print("found:", ", ".join(project["metadata"]["name"] for project in projects_found("first-call")))
try:
    call("ProjectService/GetProject", {"projectId": "00000000-0000-7000-8000-000000000000"})
except CallError as error:
    if error.reason != "ERROR_REASON_NOT_FOUND":
        raise
    print("absent:", error)
