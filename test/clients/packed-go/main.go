// Runs one scenario with the packed module: packed ADDRESS SCENARIO.
// Prints one JSON object; the token is in the environment variable TOKEN.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log"
	"os"

	"google.golang.org/protobuf/proto"

	chartroom "chartroom.example/client"
	servicev1 "chartroom.example/client/service/v1"
)

type violation struct {
	Field   string `json:"field"`
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

type event struct {
	Sequence   int64  `json:"sequence"`
	ResourceID string `json:"resourceId"`
}

func create(ctx context.Context, client *chartroom.Client, name string) (*servicev1.Project, error) {
	git := &servicev1.GitInitializer{RemoteUri: "https://git.example.org/team/" + name + ".git"}
	spec := &servicev1.EnvironmentInitializer_Spec{Spec: &servicev1.EnvironmentInitializer_Spec_Git{Git: git}}
	initializer := &servicev1.EnvironmentInitializer{Specs: []*servicev1.EnvironmentInitializer_Spec{spec}}
	res, err := client.Project.CreateProject(ctx, &servicev1.CreateProjectRequest{Initializer: initializer})
	return res.GetProject(), err
}

// walk walks five projects, by pages and one by one.
func walk(ctx context.Context, client *chartroom.Client) (any, error) {
	for number := range 5 {
		if _, err := create(ctx, client, fmt.Sprintf("listed-%d", number)); err != nil {
			return nil, err
		}
	}
	request := &servicev1.ListProjectsRequest{
		Filter:     &servicev1.ListProjectsRequest_Filter{Search: "listed-"},
		Sort:       &servicev1.Sort{Field: "id"},
		Pagination: &servicev1.PaginationRequest{PageSize: 2},
	}
	var pages []int
	for page, err := range chartroom.Pages(ctx, client.Project.ListProjects, request) {
		if err != nil {
			return nil, err
		}
		pages = append(pages, len(page.GetProjects()))
	}
	var names []string
	entries := (*servicev1.ListProjectsResponse).GetProjects
	for project, err := range chartroom.Items(ctx, client.Project.ListProjects, request, entries) {
		if err != nil {
			return nil, err
		}
		names = append(names, project.GetMetadata().GetName())
	}
	return map[string]any{"pages": pages, "names": names}, nil
}

func fail(ctx context.Context, client *chartroom.Client) (any, error) {
	_, err := client.Project.GetProject(ctx, &servicev1.GetProjectRequest{ProjectId: "x"})
	if err == nil {
		return nil, errors.New("the server took a bad id")
	}
	failure := chartroom.FailureOf(err)
	var violations []violation
	for _, each := range failure.Violations {
		violations = append(violations, violation(each))
	}
	return map[string]any{
		"code":       failure.Code.String(),
		"reason":     failure.Reason.String(),
		"metadata":   failure.Metadata,
		"violations": violations,
	}, nil
}

func lose(ctx context.Context, client *chartroom.Client) (any, error) {
	project, err := create(ctx, client, "lost")
	return map[string]any{"id": project.GetId()}, err
}

// watch watches; the connection is cut in between, of which the program sees nothing.
func watch(ctx context.Context, client *chartroom.Client) (any, error) {
	var seen []event
	request := &servicev1.WatchEventsRequest{AfterSequence: proto.Int64(0)}
	next, stop := iter.Pull2(client.WatchEvents(ctx, request))
	defer stop()
	readUntil := func(resourceID string) error {
		for {
			message, err, _ := next()
			if err != nil {
				return err
			}
			seen = append(seen, event{message.GetSequence(), message.GetResourceId()})
			if message.GetResourceId() == resourceID {
				return nil
			}
		}
	}
	first, err := create(ctx, client, "first")
	if err == nil {
		err = readUntil(first.GetId())
	}
	if err != nil {
		return nil, err
	}
	fmt.Println("watching")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return nil, err
	}
	second, err := create(ctx, client, "second")
	if err == nil {
		err = readUntil(second.GetId())
	}
	return map[string]any{"events": seen, "projects": []string{first.GetId(), second.GetId()}}, err
}

func main() {
	scenarios := map[string]func(context.Context, *chartroom.Client) (any, error){
		"list": walk, "error": fail, "lost": lose, "stream": watch,
	}
	client := chartroom.New(os.Args[1], os.Getenv("TOKEN"))
	result, err := scenarios[os.Args[2]](context.Background(), client)
	if err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		log.Fatal(err)
	}
}
