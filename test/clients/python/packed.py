"""Runs one scenario with the package of its wheel: packed.py TRANSPORT ADDRESS SCENARIO.

Prints one JSON object; the token is in the environment variable TOKEN.
"""

import json
import os
import sys
from dataclasses import asdict

from chartroom import ApiError, Client


def create(client, name):
    initializer = {"specs": [{"git": {"remote_uri": f"https://git.example.org/team/{name}.git"}}]}
    return client.project.create_project({"initializer": initializer}).project


def walk(client):
    """Walks five projects, by pages and one by one."""
    for number in range(5):
        create(client, f"listed-{number}")
    request = {"filter": {"search": "listed-"}, "sort": {"field": "id"}, "pagination": {"page_size": 2}}
    pages = [len(page.projects) for page in client.project.list_projects_pages(request)]
    return {"pages": pages, "names": [each.metadata.name for each in client.project.list_projects_items(request)]}


def fail(client):
    try:
        client.project.get_project({"project_id": "x"})
    except ApiError as error:
        found = {"code": error.code, "reason": error.reason, "metadata": error.metadata}
        return {**found, "violations": [asdict(each) for each in error.violations]}
    raise AssertionError("the server took a bad id")


def watch(client):
    """Watches; the connection is cut in between, of which the program sees nothing."""
    seen = []
    stream = client.event.watch_events({"after_sequence": 0})

    def read_until(resource_id):
        for event in stream:
            seen.append({"sequence": event.sequence, "resourceId": event.resource_id})
            if event.resource_id == resource_id:
                return

    first = create(client, "first").id
    read_until(first)
    print("watching", flush=True)
    sys.stdin.readline()
    second = create(client, "second").id
    read_until(second)
    stream.close()
    return {"events": seen, "projects": [first, second]}


SCENARIOS = {
    "list": walk,
    "error": fail,
    "lost": lambda client: {"id": create(client, "lost").id},
    "stream": watch,
}

with Client(sys.argv[2], os.environ["TOKEN"], transport=sys.argv[1]) as client:
    print(json.dumps(SCENARIOS[sys.argv[3]](client)))
