package chartroom

import (
	"context"
	"errors"
	"iter"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	servicev1 "chartroom.example/client/service/v1"
)

// A stream that was open for this long has reached the server, even if it received nothing.
const reached = 5 * time.Second

// errEarly is the error for a stream that ends without saying so.
var errEarly = connect.NewError(connect.CodeUnavailable, errors.New("the stream has ended early"))

// place is the position in a stream.
type place[Message any] interface {
	// take accepts a message, removes its part that was received before, and reports whether something in it is new.
	take(message Message) bool
	// position returns a value that changes when a message advances the stream. Not every new message does.
	position() any
	// isComplete reports whether the stream is complete if it ends now without an error.
	isComplete() bool
}

// WatchEvents yields the events of the organization, and resumes after the last one when the stream is interrupted.
// Without AfterSequence it starts at the present, and does so again when it is interrupted before its first message.
// It ends with its context, or after an error that it yields.
func (c *Client) WatchEvents(
	ctx context.Context, request *servicev1.WatchEventsRequest,
) iter.Seq2[*servicev1.WatchEventsResponse, error] {
	begin := func() (*servicev1.WatchEventsRequest, place[*servicev1.WatchEventsResponse]) {
		next := proto.CloneOf(request)
		return next, &eventPlace{next}
	}
	return watch(ctx, c.retryFor, c.Event.WatchEvents, begin)
}

// WatchAgentExecution yields the output of an agent, and resumes after the last block when the stream is interrupted:
// the run itself comes first then. It ends when the run has, with its context, or after an error that it yields.
func (c *Client) WatchAgentExecution(
	ctx context.Context, request *servicev1.WatchAgentExecutionRequest,
) iter.Seq2[*servicev1.WatchAgentExecutionResponse, error] {
	begin := func() (*servicev1.WatchAgentExecutionRequest, place[*servicev1.WatchAgentExecutionResponse]) {
		next := proto.CloneOf(request)
		return next, &agentPlace{request: next}
	}
	return watch(ctx, c.retryFor, c.Agent.WatchAgentExecution, begin)
}

// StreamActionLogs yields the output of an action, and resumes after the last piece when the stream is interrupted.
// It ends when the stream does, with its context, or after an error that it yields.
func (c *Client) StreamActionLogs(
	ctx context.Context, request *servicev1.StreamActionLogsRequest,
) iter.Seq2[*servicev1.StreamActionLogsResponse, error] {
	begin := func() (*servicev1.StreamActionLogsRequest, place[*servicev1.StreamActionLogsResponse]) {
		next := proto.CloneOf(request)
		return next, &logPlace{request: next}
	}
	return watch(ctx, c.retryFor, c.Workflow.StreamActionLogs, begin)
}

type eventPlace struct{ request *servicev1.WatchEventsRequest }

func (p *eventPlace) take(message *servicev1.WatchEventsResponse) bool {
	p.request.AfterSequence = proto.Int64(message.GetSequence())
	return true
}

func (p *eventPlace) position() any { return p.request.GetAfterSequence() }

func (*eventPlace) isComplete() bool { return false }

type agentPlace struct {
	request    *servicev1.WatchAgentExecutionRequest
	hasStopped bool
}

func (p *agentPlace) take(message *servicev1.WatchAgentExecutionResponse) bool {
	if block := message.GetBlock(); block != nil {
		// The last sequence in the folded view; empty in the other view.
		sequence := block.GetLastSequence()
		if sequence == 0 {
			sequence = block.GetSequence()
		}
		p.request.AfterSequence = max(p.request.AfterSequence, sequence)
	}
	if run := message.GetAgentExecution(); run != nil {
		p.hasStopped = run.GetStatus().GetPhase() == servicev1.AgentExecution_PHASE_STOPPED
	}
	return true
}

// The run itself comes first in each stream and has no number.
func (p *agentPlace) position() any { return p.request.AfterSequence }

func (p *agentPlace) isComplete() bool { return p.hasStopped }

// logPlace requests all pieces again, since an offset would also apply to another attempt that has begun in the
// meantime, and drops those that were received before.
type logPlace struct {
	request       *servicev1.StreamActionLogsRequest
	attempt, step int32
	end           int64
}

func (p *logPlace) take(piece *servicev1.StreamActionLogsResponse) bool {
	isFirst := p.attempt == 0
	isOld := piece.Attempt < p.attempt || piece.Attempt == p.attempt && piece.StepIndex < p.step
	known := int64(0)
	if piece.Attempt == p.attempt && piece.StepIndex == p.step {
		known = p.end
	}
	end := piece.Offset + int64(len(piece.Data))
	if isOld || end <= known {
		return false
	}
	if piece.Offset < known {
		piece.Data = piece.Data[known-piece.Offset:]
		piece.Offset = known
	}
	// For the very first piece, only the server knows what is missing before it.
	if !isFirst {
		piece.LeftOutBytes = piece.Offset - known
	}
	p.attempt, p.step, p.end = piece.Attempt, piece.StepIndex, end
	// The requested offset applies only to the attempt of the first piece.
	p.request.AfterOffset = 0
	return true
}

func (p *logPlace) position() any { return [3]int64{int64(p.attempt), int64(p.step), p.end} }

func (*logPlace) isComplete() bool { return true }

// watch yields the messages of a stream, which it opens again after an interruption.
func watch[Request, Response any](
	ctx context.Context,
	retryFor time.Duration,
	open func(context.Context, *Request) (*connect.ServerStreamForClient[Response], error),
	begin func() (*Request, place[*Response]),
) iter.Seq2[*Response, error] {
	return func(yield func(*Response, error) bool) {
		request, came := begin()
		failures := 0
		var failingSince time.Time
		for {
			isGood, isLeft, err := follow(ctx, open, request, came, yield)
			if isLeft || err == nil && came.isComplete() {
				return
			}
			if err == nil {
				err = errEarly
			}
			now := time.Now()
			if isGood || failures == 0 {
				failures, failingSince = 0, now
			}
			failures++
			pause := pauseAfter(err, failures)
			isLate := now.Add(pause).Sub(failingSince) > retryFor
			if !isTemporary(ctx, err, true) || isLate || !sleep(ctx, pause) {
				yield(nil, err)
				return
			}
		}
	}
}

// follow yields what is new in one stream, until it ends or the caller leaves it. A stream counts as good when it has
// advanced the place or was open for long enough.
func follow[Request, Response any](
	ctx context.Context,
	open func(context.Context, *Request) (*connect.ServerStreamForClient[Response], error),
	request *Request,
	came place[*Response],
	yield func(*Response, error) bool,
) (isGood, isLeft bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := open(ctx, request)
	if err != nil {
		return false, false, err
	}
	defer func() { _ = stream.Close() }()
	before := came.position()
	// The time until here was spent connecting, unless this fails too.
	stream.ResponseHeader()
	opened := time.Now()
	for stream.Receive() {
		message := stream.Msg()
		if came.take(message) && !yield(message, nil) {
			return true, true, nil
		}
	}
	isGood = came.position() != before || time.Since(opened) > reached
	return isGood, false, stream.Err()
}
