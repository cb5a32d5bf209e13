// Runs one scenario against a server with connect-go: overconnect ADDRESS SCENARIO.
// Prints one JSON object; the token is in the environment variable TOKEN.
package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"time"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"connectrpc.com/connect"

	servicev1 "example.org/you/gen/service/v1"
	"example.org/you/gen/service/v1/servicev1connect"
	"example.org/you/scenario"
)

// authorize adds the token to unary calls and to streams.
type authorize struct{}

func (authorize) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		req.Header().Set("Authorization", "Bearer "+os.Getenv("TOKEN"))
		return next(ctx, req)
	}
}

func (authorize) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		conn := next(ctx, spec)
		conn.RequestHeader().Set("Authorization", "Bearer "+os.Getenv("TOKEN"))
		return conn
	}
}

func (authorize) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// client calls the server over the Connect protocol, with compressed requests.
type client struct {
	projects  servicev1connect.ProjectServiceClient
	workflows servicev1connect.WorkflowServiceClient
	events    servicev1connect.EventServiceClient
}

func (c client) CreateProject(ctx context.Context, req *servicev1.CreateProjectRequest) (*servicev1.CreateProjectResponse, error) {
	res, err := c.projects.CreateProject(ctx, connect.NewRequest(req))
	if err != nil {
		return nil, err
	}
	return res.Msg, nil
}

func (c client) GetProject(ctx context.Context, req *servicev1.GetProjectRequest) (*servicev1.GetProjectResponse, error) {
	res, err := c.projects.GetProject(ctx, connect.NewRequest(req))
	if err != nil {
		return nil, err
	}
	return res.Msg, nil
}

func (c client) ListProjects(ctx context.Context, req *servicev1.ListProjectsRequest) (*servicev1.ListProjectsResponse, error) {
	res, err := c.projects.ListProjects(ctx, connect.NewRequest(req))
	if err != nil {
		return nil, err
	}
	return res.Msg, nil
}

func (c client) CreateWorkflow(ctx context.Context, req *servicev1.CreateWorkflowRequest) (*servicev1.CreateWorkflowResponse, error) {
	res, err := c.workflows.CreateWorkflow(ctx, connect.NewRequest(req))
	if err != nil {
		return nil, err
	}
	return res.Msg, nil
}

func (c client) WatchEvents(ctx context.Context, req *servicev1.WatchEventsRequest) (scenario.Stream, error) {
	stream, err := c.events.WatchEvents(ctx, connect.NewRequest(req))
	if err != nil {
		return nil, err
	}
	return received{stream}, nil
}

// received gives the messages of a stream one by one.
type received struct {
	stream *connect.ServerStreamForClient[servicev1.WatchEventsResponse]
}

func (r received) Next() (*servicev1.WatchEventsResponse, error) {
	if r.stream.Receive() {
		return r.stream.Msg(), nil
	}
	if err := r.stream.Err(); err != nil {
		return nil, err
	}
	return nil, errors.New("the stream ended without an error")
}

// failure reads the code, the reason and the violations from the error's details.
func failure(err error) scenario.Failure {
	found := scenario.Failure{Code: connect.CodeOf(err).String()}
	var connectErr *connect.Error
	if !errors.As(err, &connectErr) {
		return found
	}
	for _, detail := range connectErr.Details() {
		value, err := detail.Value()
		if err != nil {
			continue
		}
		switch message := value.(type) {
		case *servicev1.ErrorDetail:
			found.Reason = message.GetReason().String()
		case *validate.Violations:
			found.Violations = scenario.Broken(message)
		}
	}
	return found
}

func main() {
	address := os.Args[1] + "/api"
	options := []connect.ClientOption{connect.WithInterceptors(authorize{}), connect.WithSendGzip()}
	calls := client{
		projects:  servicev1connect.NewProjectServiceClient(http.DefaultClient, address, options...),
		workflows: servicev1connect.NewWorkflowServiceClient(http.DefaultClient, address, options...),
		events:    servicev1connect.NewEventServiceClient(http.DefaultClient, address, options...),
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	scenario.Run(ctx, os.Args[2], calls, failure)
}
