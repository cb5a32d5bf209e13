"""Makes calls with the client that was generated into the folder `client`: generated.py ADDRESS.

Prints one JSON object; the token is in the environment variable TOKEN.
"""

import json
import os
import sys

from client import AuthenticatedClient
from client.api.project_service import (
    project_service_create_project,
    project_service_get_project,
    project_service_list_projects,
)
from client.models import (
    Error,
    ServiceV1CreateProjectRequest,
    ServiceV1EnvironmentInitializerInRequest,
    ServiceV1EnvironmentInitializerSpecInRequest,
    ServiceV1GetProjectRequest,
    ServiceV1GitInitializerInRequest,
    ServiceV1ListProjectsRequest,
    ServiceV1PaginationRequest,
)

client = AuthenticatedClient(base_url=sys.argv[1], token=os.environ["TOKEN"])


def create(name, key):
    git = ServiceV1GitInitializerInRequest(remote_uri=f"https://git.example.org/team/{name}.git")
    spec = ServiceV1EnvironmentInitializerSpecInRequest(git=git)
    initializer = ServiceV1EnvironmentInitializerInRequest(specs=[spec])
    request = ServiceV1CreateProjectRequest(initializer=initializer)
    answer = project_service_create_project.sync(client=client, body=request, idempotency_key=key)
    return answer.project


created = [create("one", "key-1"), create("two", "key-2"), create("two", "key-2")]
names, token = [], ""
while True:
    pagination = ServiceV1PaginationRequest(page_size=1, token=token)
    page = project_service_list_projects.sync(
        client=client, body=ServiceV1ListProjectsRequest(pagination=pagination)
    )
    names += [project.metadata.name for project in page.projects]
    token = page.pagination.next_token
    if not token:
        break

refused = project_service_get_project.sync(
    client=client, body=ServiceV1GetProjectRequest(project_id="0199c2a4-7d10-7a3e-8f00-000000000001")
)
assert isinstance(refused, Error)
print(
    json.dumps(
        {
            "isSameWithItsKey": created[1].id == created[2].id,
            "names": sorted(names),
            "refused": [refused.code.value, refused.details[0].debug.reason.value],
            "createdIn": created[0].metadata.created_at.year,
        }
    )
)
