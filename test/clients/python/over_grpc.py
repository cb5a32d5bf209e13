"""Runs one scenario against a server with grpcio: over_grpc.py ADDRESS SCENARIO.

Prints one JSON object; the token is in the environment variable TOKEN.
"""

import json
import os
import sys

sys.path.insert(0, "gen")
import grpc
import protovalidate
from google.protobuf.unknown_fields import UnknownFieldSet
from google.rpc import status_pb2
from service.v1 import error_reason_pb2
from service.v1 import event_service_pb2 as events
from service.v1 import project_service_pb2 as projects
from service.v1 import workflow_service_pb2 as workflows
from service.v1.event_service_pb2_grpc import EventServiceStub
from service.v1.project_service_pb2_grpc import ProjectServiceStub
from service.v1.workflow_service_pb2_grpc import WorkflowServiceStub

TOKEN = [("authorization", f"Bearer {os.environ['TOKEN']}")]
# A call can still be given to a connection that has just been cut.
RETRIES = {
    "methodConfig": [
        {
            "name": [{}],
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.1s",
                "maxBackoff": "1s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ]
}
PATIENT = {"metadata": TOKEN, "timeout": 60, "wait_for_ready": True, "compression": grpc.Compression.Gzip}


def failure(error):
    """Reads the code, the reason and the violations from the status of an error."""
    found = {"code": error.code().name}
    for key, value in error.trailing_metadata() or ():
        if key != "grpc-status-details-bin":
            continue
        for detail in status_pb2.Status.FromString(value).details:
            if detail.type_url.endswith("/service.v1.ErrorDetail"):
                message = error_reason_pb2.ErrorDetail.FromString(detail.value)
                found["reason"] = error_reason_pb2.ErrorReason.Name(message.reason)
            if detail.type_url.endswith("/buf.validate.Violations"):
                message = protovalidate.ViolationsPb.from_binary(detail.value)
                found["violations"] = [broken(each) for each in message.violations]
    return found


def broken(violation):
    """Returns the field and the rule of a violation."""
    return {
        "field": ".".join(each.field_name for each in violation.field.elements),
        "rule": violation.rule_id,
    }


def create(channel, name="created"):
    req = projects.CreateProjectRequest()
    req.initializer.specs.add().git.remote_uri = f"https://git.example.org/team/{name}.git"
    # The key makes it safe to send the call again.
    call = PATIENT | {"metadata": [*TOKEN, ("idempotency-key", name)]}
    return ProjectServiceStub(channel).CreateProject(req, **call).project


def list_pages(channel):
    """Walks five projects in pages of two."""
    for number in range(5):
        create(channel, f"listed-{number}")
    pages, token = [], ""
    while True:
        answer = ProjectServiceStub(channel).ListProjects(
            projects.ListProjectsRequest(
                filter={"search": "listed-"},
                sort={"field": "id"},
                pagination={"page_size": 2, "token": token},
            ),
            **PATIENT,
        )
        pages.append([each.metadata.name for each in answer.projects])
        token = answer.pagination.next_token
        if not token:
            return {"pages": pages}


def refused(channel):
    try:
        ProjectServiceStub(channel).GetProject(projects.GetProjectRequest(project_id="x"), **PATIENT)
    except grpc.RpcError as error:
        return failure(error)
    raise AssertionError("the server took a bad id")


def rules(_channel):
    """Checks a request before it is sent."""
    found = protovalidate.collect_violations(projects.GetProjectRequest(project_id="x"))
    return {"violations": [broken(each.proto) for each in found]}


def stream(channel):
    """Watches until the connection is cut, and resumes after the last event that it has."""
    service = EventServiceStub(channel)
    seen = []

    def watch(after):
        for event in service.WatchEvents(events.WatchEventsRequest(after_sequence=after), **PATIENT):
            seen.append({"sequence": event.sequence, "resourceId": event.resource_id})
            yield event.resource_id

    first = create(channel, "first").id
    opened = watch(0)
    while next(opened) != first:
        pass
    print("watching", flush=True)
    try:
        for _ in opened:
            pass
    except grpc.RpcError as error:
        cut = error.code().name
    second = create(channel, "second").id
    for resource_id in watch(seen[-1]["sequence"]):
        if resource_id == second:
            return {"cut": cut, "events": seen, "projects": [first, second]}


def deadline(channel):
    """Waits for events of the future for a moment only."""
    try:
        for _ in EventServiceStub(channel).WatchEvents(
            events.WatchEventsRequest(), metadata=TOKEN, timeout=0.5
        ):
            pass
    except grpc.RpcError as error:
        return {"code": error.code().name}
    raise AssertionError("the stream ended without an error")


def compression(channel):
    """Sends and receives a workflow of 100,000 equal characters."""
    req = workflows.CreateWorkflowRequest(name="Compressed")
    req.action.limits.max_parallel = req.action.limits.max_total = 1
    for _ in range(5):
        req.action.steps.add().task.command = "a" * 20_000
    steps = WorkflowServiceStub(channel).CreateWorkflow(req, **PATIENT).workflow.spec.action.steps
    return {"characters": sum(len(each.task.command) for each in steps)}


def unknown(channel):
    """Reads an answer with a field that this client's contract does not have."""
    metadata = create(channel, "older").metadata
    return {"name": metadata.name, "unknownFields": len(UnknownFieldSet(metadata)) > 0}


SCENARIOS = {
    "create": lambda channel: {"name": create(channel).metadata.name},
    "list": list_pages,
    "error": refused,
    "rules": rules,
    "stream": stream,
    "deadline": deadline,
    "compression": compression,
    "unknown": unknown,
}

OPTIONS = [("grpc.service_config", json.dumps(RETRIES))]
with grpc.insecure_channel(sys.argv[1].removeprefix("http://"), OPTIONS) as channel:
    print(json.dumps(SCENARIOS[sys.argv[2]](channel)))
