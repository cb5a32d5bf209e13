// Package scenario holds what both Go clients do, whatever they speak.
package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"

	servicev1 "example.org/you/gen/service/v1"
)

// Client is what the scenarios call.
type Client interface {
	CreateProject(context.Context, *servicev1.CreateProjectRequest) (*servicev1.CreateProjectResponse, error)
	GetProject(context.Context, *servicev1.GetProjectRequest) (*servicev1.GetProjectResponse, error)
	ListProjects(context.Context, *servicev1.ListProjectsRequest) (*servicev1.ListProjectsResponse, error)
	CreateWorkflow(context.Context, *servicev1.CreateWorkflowRequest) (*servicev1.CreateWorkflowResponse, error)
	WatchEvents(context.Context, *servicev1.WatchEventsRequest) (Stream, error)
}

// Stream gives the messages of a WatchEvents one by one.
type Stream interface {
	Next() (*servicev1.WatchEventsResponse, error)
}

// Violation is one broken rule of the contract.
type Violation struct {
	Field string `json:"field"`
	Rule  string `json:"rule"`
}

// Failure is what a program can read from an error.
type Failure struct {
	Code       string      `json:"code"`
	Reason     string      `json:"reason,omitempty"`
	Violations []Violation `json:"violations,omitempty"`
}

// Broken returns the fields and rules of violations.
func Broken(violations *validate.Violations) []Violation {
	var broken []Violation
	for _, each := range violations.GetViolations() {
		broken = append(broken, Violation{protovalidate.FieldPathString(each.GetField()), each.GetRuleId()})
	}
	return broken
}

// Run runs one scenario and prints its result as one line of JSON.
func Run(ctx context.Context, name string, client Client, failure func(error) Failure) {
	scenarios := map[string]func() (any, error){
		"create":      func() (any, error) { return create(ctx, client) },
		"list":        func() (any, error) { return list(ctx, client) },
		"error":       func() (any, error) { return refused(ctx, client, failure) },
		"rules":       func() (any, error) { return rules() },
		"stream":      func() (any, error) { return stream(ctx, client, failure) },
		"deadline":    func() (any, error) { return deadline(ctx, client, failure) },
		"compression": func() (any, error) { return compression(ctx, client) },
		"unknown":     func() (any, error) { return unknown(ctx, client) },
	}
	result, err := scenarios[name]()
	if err != nil {
		log.Fatal(err)
	}
	printed, err := json.Marshal(result)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(printed))
}

// project asks for a project with a repository of its name.
func project(name string) *servicev1.CreateProjectRequest {
	git := &servicev1.GitInitializer{RemoteUri: "https://git.example.org/team/" + name + ".git"}
	return &servicev1.CreateProjectRequest{
		Initializer: &servicev1.EnvironmentInitializer{
			Specs: []*servicev1.EnvironmentInitializer_Spec{
				{Spec: &servicev1.EnvironmentInitializer_Spec_Git{Git: git}},
			},
		},
	}
}

func create(ctx context.Context, client Client) (any, error) {
	res, err := client.CreateProject(ctx, project("created"))
	return map[string]string{"name": res.GetProject().GetMetadata().GetName()}, err
}

// list walks five projects in pages of two.
func list(ctx context.Context, client Client) (any, error) {
	for number := range 5 {
		if _, err := client.CreateProject(ctx, project(fmt.Sprintf("listed-%d", number))); err != nil {
			return nil, err
		}
	}
	var pages [][]string
	token := ""
	for {
		res, err := client.ListProjects(ctx, &servicev1.ListProjectsRequest{
			Filter:     &servicev1.ListProjectsRequest_Filter{Search: "listed-"},
			Sort:       &servicev1.Sort{Field: "id"},
			Pagination: &servicev1.PaginationRequest{PageSize: 2, Token: token},
		})
		if err != nil {
			return nil, err
		}
		var names []string
		for _, each := range res.GetProjects() {
			names = append(names, each.GetMetadata().GetName())
		}
		pages = append(pages, names)
		if token = res.GetPagination().GetNextToken(); token == "" {
			return map[string]any{"pages": pages}, nil
		}
	}
}

func refused(ctx context.Context, client Client, failure func(error) Failure) (any, error) {
	_, err := client.GetProject(ctx, &servicev1.GetProjectRequest{ProjectId: "x"})
	if err == nil {
		return nil, errors.New("the server took a bad id")
	}
	return failure(err), nil
}

// rules checks a request before it is sent.
func rules() (any, error) {
	err := protovalidate.Validate(&servicev1.GetProjectRequest{ProjectId: "x"})
	var invalid *protovalidate.ValidationError
	if !errors.As(err, &invalid) {
		return nil, errors.New("the rules let a bad id pass")
	}
	return map[string]any{"violations": Broken(invalid.ToProto())}, nil
}

// event is what the test reads of a message.
type event struct {
	Sequence   int64  `json:"sequence"`
	ResourceID string `json:"resourceId"`
}

// watched reads a stream until the first event of a resource.
func watched(stream Stream, resourceID string) ([]event, error) {
	var events []event
	for {
		message, err := stream.Next()
		if err != nil {
			return nil, err
		}
		events = append(events, event{message.GetSequence(), message.GetResourceId()})
		if message.GetResourceId() == resourceID {
			return events, nil
		}
	}
}

// stream watches until the connection is cut, and resumes after the last event that it has.
func stream(ctx context.Context, client Client, failure func(error) Failure) (any, error) {
	first, err := client.CreateProject(ctx, project("first"))
	if err != nil {
		return nil, err
	}
	position := int64(0)
	opened, err := client.WatchEvents(ctx, &servicev1.WatchEventsRequest{AfterSequence: &position})
	if err != nil {
		return nil, err
	}
	events, err := watched(opened, first.GetProject().GetId())
	if err != nil {
		return nil, err
	}
	fmt.Println("watching")
	for err == nil {
		var message *servicev1.WatchEventsResponse
		if message, err = opened.Next(); err == nil {
			events = append(events, event{message.GetSequence(), message.GetResourceId()})
		}
	}
	cut := failure(err).Code
	second, err := client.CreateProject(ctx, project("second"))
	if err != nil {
		return nil, err
	}
	position = events[len(events)-1].Sequence
	resumed, err := client.WatchEvents(ctx, &servicev1.WatchEventsRequest{AfterSequence: &position})
	if err != nil {
		return nil, err
	}
	rest, err := watched(resumed, second.GetProject().GetId())
	return map[string]any{
		"cut":      cut,
		"events":   append(events, rest...),
		"projects": []string{first.GetProject().GetId(), second.GetProject().GetId()},
	}, err
}

// deadline waits for events of the future for a moment only.
func deadline(ctx context.Context, client Client, failure func(error) Failure) (any, error) {
	short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	stream, err := client.WatchEvents(short, &servicev1.WatchEventsRequest{})
	for err == nil {
		_, err = stream.Next()
	}
	return failure(err), nil
}

// compression sends and receives a workflow of 100,000 equal characters.
func compression(ctx context.Context, client Client) (any, error) {
	var steps []*servicev1.WorkflowStep
	for range 5 {
		task := &servicev1.WorkflowStep_Task{Command: strings.Repeat("a", 20_000)}
		steps = append(steps, &servicev1.WorkflowStep{Step: &servicev1.WorkflowStep_Task_{Task: task}})
	}
	res, err := client.CreateWorkflow(ctx, &servicev1.CreateWorkflowRequest{
		Name: "Compressed",
		Action: &servicev1.WorkflowAction{
			Limits: &servicev1.WorkflowAction_Limits{MaxParallel: 1, MaxTotal: 1},
			Steps:  steps,
		},
	})
	if err != nil {
		return nil, err
	}
	characters := 0
	for _, each := range res.GetWorkflow().GetSpec().GetAction().GetSteps() {
		characters += len(each.GetTask().GetCommand())
	}
	return map[string]int{"characters": characters}, nil
}

// unknown reads an answer with a field that this client's contract does not have.
func unknown(ctx context.Context, client Client) (any, error) {
	res, err := client.CreateProject(ctx, project("older"))
	if err != nil {
		return nil, err
	}
	metadata := res.GetProject().GetMetadata()
	return map[string]any{
		"name":          metadata.GetName(),
		"unknownFields": len(metadata.ProtoReflect().GetUnknown()) > 0,
	}, nil
}

