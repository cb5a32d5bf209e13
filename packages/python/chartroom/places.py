"""The position in a stream, and the request that resumes from there."""

from __future__ import annotations

from google.protobuf.message import Message

from .service.v1.agent_pb2 import AgentExecution


class EventPlace:
    """The position in a stream of events: the sequence of the last message."""

    def __init__(self, request: Message) -> None:
        self._request = request

    def take(self, message: Message) -> Message | None:
        """Accepts a message and returns its new part."""
        self._request.after_sequence = message.sequence
        return message

    def position(self) -> object:
        """Returns a value that changes when a message advances the stream. Not every new message does."""
        return self._request.after_sequence

    def next_request(self) -> Message:
        """Returns the request that resumes after the last message."""
        return self._request

    def is_complete(self) -> bool:
        """Returns whether the stream is complete if it ends now without an error."""
        return False


class AgentPlace(EventPlace):
    """The position in a run's output: the last block. Each stream sends the run itself again."""

    def __init__(self, request: Message) -> None:
        super().__init__(request)
        self._has_stopped = False

    def take(self, message: Message) -> Message | None:
        if message.WhichOneof("news") == "agent_execution":
            self._has_stopped = message.agent_execution.status.phase == AgentExecution.PHASE_STOPPED
        elif message.WhichOneof("news") == "block":
            # `last_sequence` in the folded view; empty in the other view.
            reached = message.block.last_sequence or message.block.sequence
            self._request.after_sequence = max(self._request.after_sequence, reached)
        return message

    def is_complete(self) -> bool:
        return self._has_stopped


class LogPlace(EventPlace):
    """The position in logs: attempt, step and bytes.

    The request asks for all pieces again, since an offset would also apply to another attempt that has begun in
    the meantime. Pieces that were received before are dropped.
    """

    def __init__(self, request: Message) -> None:
        super().__init__(request)
        self._reached = (0, 0, 0)

    def take(self, message: Message) -> Message | None:
        step = (message.attempt, message.step_index)
        end = message.offset + len(message.data)
        had = self._reached[2] if step == self._reached[:2] else 0
        if step < self._reached[:2] or end <= had:
            return None
        is_first = self._reached[0] == 0
        self._reached = (*step, end)
        self._request.after_offset = 0
        if message.offset < had:
            message.data = message.data[had - message.offset :]
            message.offset = had
        # For the very first piece, only the server knows what is missing before it.
        if not is_first:
            message.left_out_bytes = message.offset - had
        return message

    def position(self) -> object:
        return self._reached

    def is_complete(self) -> bool:
        return True


PLACES = {
    "service.v1.EventService/WatchEvents": EventPlace,
    "service.v1.AgentService/WatchAgentExecution": AgentPlace,
    "service.v1.WorkflowService/StreamActionLogs": LogPlace,
}
