"""Gives pieces of logs to the package as a stream that is opened again brings them, and prints what of them is new."""

import json

from chartroom.places import LogPlace
from chartroom.service.v1.workflow_service_pb2 import StreamActionLogsRequest, StreamActionLogsResponse

PIECES = [
    (1, 0, 2, b"cd"),
    (1, 0, 0, b"abcd"),
    (1, 0, 0, b"abcdef"),
    (1, 0, 9, b"j"),
    (1, 1, 0, b"x"),
    (1, 0, 10, b"k"),
    (2, 0, 0, b"ab"),
    (1, 1, 1, b"y"),
]

place = LogPlace(StreamActionLogsRequest(after_offset=2))
new = [
    place.take(StreamActionLogsResponse(attempt=attempt, step_index=step, offset=offset, data=data))
    for attempt, step, offset, data in PIECES
]
print(
    json.dumps(
        {
            "new": [[each.data.decode(), each.offset, each.left_out_bytes] for each in new if each],
            "afterOffset": place.next_request().after_offset,
        }
    )
)
