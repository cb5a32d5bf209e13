package chartroom.client;

import chartroom.service.v1.AgentExecution;
import chartroom.service.v1.StreamActionLogsRequest;
import chartroom.service.v1.StreamActionLogsResponse;
import chartroom.service.v1.WatchAgentExecutionRequest;
import chartroom.service.v1.WatchAgentExecutionResponse;
import chartroom.service.v1.WatchEventsRequest;
import chartroom.service.v1.WatchEventsResponse;
import java.util.Iterator;
import java.util.List;
import java.util.function.Function;

/** The positions in the contract's streams. */
final class Places {
  private Places() {}

  /** The sequence of the last event. */
  static final class Events implements Place<WatchEventsResponse> {
    private final Function<WatchEventsRequest, Iterator<WatchEventsResponse>> stream;
    private WatchEventsRequest request;

    Events(WatchEventsRequest request, Function<WatchEventsRequest, Iterator<WatchEventsResponse>> stream) {
      this.request = request;
      this.stream = stream;
    }

    @Override
    public Iterator<WatchEventsResponse> open() {
      return stream.apply(request);
    }

    @Override
    public WatchEventsResponse take(WatchEventsResponse message) {
      request = request.toBuilder().setAfterSequence(message.getSequence()).build();
      return message;
    }

    @Override
    public Object position() {
      return request.getAfterSequence();
    }

    @Override
    public boolean isComplete() {
      return false;
    }
  }

  /** The last block. The run itself has no number. */
  static final class Agent implements Place<WatchAgentExecutionResponse> {
    private final Function<WatchAgentExecutionRequest, Iterator<WatchAgentExecutionResponse>> stream;
    private WatchAgentExecutionRequest request;
    private boolean hasStopped;

    Agent(
        WatchAgentExecutionRequest request,
        Function<WatchAgentExecutionRequest, Iterator<WatchAgentExecutionResponse>> stream) {
      this.request = request;
      this.stream = stream;
    }

    @Override
    public Iterator<WatchAgentExecutionResponse> open() {
      return stream.apply(request);
    }

    @Override
    public WatchAgentExecutionResponse take(WatchAgentExecutionResponse message) {
      if (message.hasBlock()) {
        // The last sequence in the folded view; empty in the other view.
        long last = message.getBlock().getLastSequence();
        long sequence = last != 0 ? last : message.getBlock().getSequence();
        request = request.toBuilder().setAfterSequence(Math.max(request.getAfterSequence(), sequence)).build();
      }
      if (message.hasAgentExecution())
        hasStopped = message.getAgentExecution().getStatus().getPhase() == AgentExecution.Phase.PHASE_STOPPED;
      return message;
    }

    @Override
    public Object position() {
      return request.getAfterSequence();
    }

    @Override
    public boolean isComplete() {
      return hasStopped;
    }
  }

  /**
   * Attempt, step and bytes. Requests all pieces again, since an offset would also apply to another attempt that has
   * begun in the meantime, and drops those that were received before.
   */
  static final class Logs implements Place<StreamActionLogsResponse> {
    private final Function<StreamActionLogsRequest, Iterator<StreamActionLogsResponse>> stream;
    private StreamActionLogsRequest request;
    private int attempt;
    private int step;
    private long end;

    Logs(
        StreamActionLogsRequest request,
        Function<StreamActionLogsRequest, Iterator<StreamActionLogsResponse>> stream) {
      this.request = request;
      this.stream = stream;
    }

    @Override
    public Iterator<StreamActionLogsResponse> open() {
      return stream.apply(request);
    }

    @Override
    public StreamActionLogsResponse take(StreamActionLogsResponse message) {
      boolean isFirst = attempt == 0;
      boolean isSameAttempt = message.getAttempt() == attempt;
      boolean isOld = message.getAttempt() < attempt || isSameAttempt && message.getStepIndex() < step;
      long known = isSameAttempt && message.getStepIndex() == step ? end : 0;
      long until = message.getOffset() + message.getData().size();
      if (isOld || until <= known) return null;
      var piece = message.toBuilder();
      if (message.getOffset() < known) {
        piece.setData(message.getData().substring((int) (known - message.getOffset())));
        piece.setOffset(known);
      }
      // For the very first piece, only the server knows what is missing before it.
      if (!isFirst) piece.setLeftOutBytes(piece.getOffset() - known);
      attempt = message.getAttempt();
      step = message.getStepIndex();
      end = until;
      request = request.toBuilder().setAfterOffset(0).build();
      return piece.build();
    }

    @Override
    public Object position() {
      return List.of(attempt, step, end);
    }

    @Override
    public boolean isComplete() {
      return true;
    }
  }
}
