// Runs one scenario against a server with grpc-go: overgrpc ADDRESS SCENARIO.
// Prints one JSON object; the token is in the environment variable TOKEN.
package main

import (
	"context"
	"log"
	"os"
	"strings"
	"time"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"

	servicev1 "example.org/you/gen/service/v1"
	"example.org/you/scenario"
)

// token is the metadata of each call.
type token string

func (t token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(t)}, nil
}

// RequireTransportSecurity allows the token without TLS: the server is on this machine.
func (token) RequireTransportSecurity() bool { return false }

// client calls the server over gRPC, with compressed requests.
type client struct {
	projects  servicev1.ProjectServiceClient
	workflows servicev1.WorkflowServiceClient
	events    servicev1.EventServiceClient
}

func (c client) CreateProject(ctx context.Context, req *servicev1.CreateProjectRequest) (*servicev1.CreateProjectResponse, error) {
	return c.projects.CreateProject(ctx, req)
}

func (c client) GetProject(ctx context.Context, req *servicev1.GetProjectRequest) (*servicev1.GetProjectResponse, error) {
	return c.projects.GetProject(ctx, req)
}

func (c client) ListProjects(ctx context.Context, req *servicev1.ListProjectsRequest) (*servicev1.ListProjectsResponse, error) {
	return c.projects.ListProjects(ctx, req)
}

func (c client) CreateWorkflow(ctx context.Context, req *servicev1.CreateWorkflowRequest) (*servicev1.CreateWorkflowResponse, error) {
	return c.workflows.CreateWorkflow(ctx, req)
}

func (c client) WatchEvents(ctx context.Context, req *servicev1.WatchEventsRequest) (scenario.Stream, error) {
	stream, err := c.events.WatchEvents(ctx, req)
	if err != nil {
		return nil, err
	}
	return received{stream}, nil
}

// received gives the messages of a stream one by one.
type received struct {
	stream grpc.ServerStreamingClient[servicev1.WatchEventsResponse]
}

func (r received) Next() (*servicev1.WatchEventsResponse, error) { return r.stream.Recv() }

// failure reads the code, the reason and the violations from the status.
func failure(err error) scenario.Failure {
	failed := status.Convert(err)
	found := scenario.Failure{Code: failed.Code().String()}
	for _, detail := range failed.Details() {
		switch message := detail.(type) {
		case *servicev1.ErrorDetail:
			found.Reason = message.GetReason().String()
		case *validate.Violations:
			found.Violations = scenario.Broken(message)
		}
	}
	return found
}

func main() {
	conn, err := grpc.NewClient(
		strings.TrimPrefix(os.Args[1], "http://"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithPerRPCCredentials(token(os.Getenv("TOKEN"))),
		grpc.WithDefaultCallOptions(grpc.UseCompressor(gzip.Name), grpc.WaitForReady(true)),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	calls := client{
		projects:  servicev1.NewProjectServiceClient(conn),
		workflows: servicev1.NewWorkflowServiceClient(conn),
		events:    servicev1.NewEventServiceClient(conn),
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	scenario.Run(ctx, os.Args[2], calls, failure)
}
