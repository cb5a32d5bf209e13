"""How far a stream has come, and the request with which it goes on from there."""

from __future__ import annotations

from google.protobuf.message import Message

from .service.v1.agent_pb2 import AgentExecution


class EventPlace:
    """The place in a stream of events: the sequence of the last message."""

    def __init__(self, request: Message) -> None:
        self._request = request

    def take(self, message: Message) -> Message | None:
        """Notes a message and returns what of it is new."""
        self._request.after_sequence = message.sequence
        return message

    def position(self) -> object:
        """Returns what differs once a message has brought the place forward, which not each new one does."""
        return self._request.after_sequence

    def next_request(self) -> Message:
        """Returns the request for what follows the last message."""
        return self._request

    def is_complete(self) -> bool:
        """Returns whether a stream that ends now without an error has ended for good."""
        return False


class AgentPlace(EventPlace):
    """The place in a run's output: the last block. The run itself comes again at each beginning."""

    def __init__(self, request: Message) -> None:
        super().__init__(request)
        self._has_stopped = False

    def take(self, message: Message) -> Message | None:
        if message.WhichOneof("news") == "agent_execution":
            self._has_stopped = message.agent_execution.status.phase == AgentExecution.PHASE_STOPPED
        elif message.WhichOneof("news") == "block":
            # In the folded view `last_sequence`, which the other view leaves empty.
            reached = message.block.last_sequence or message.block.sequence
            self._request.after_sequence = max(self._request.after_sequence, reached)
        return message

    def is_complete(self) -> bool:
        return self._has_stopped


class LogPlace(EventPlace):
    """The place in logs: attempt, step and bytes.

    The request begins again, since an offset would hold for another attempt that has begun meanwhile; what was
    had before is dropped.
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
        # Of the very first piece the server knows alone what is missing before it.
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
