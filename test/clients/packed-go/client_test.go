package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	chartroom "chartroom.example/client"
	servicev1 "chartroom.example/client/service/v1"
	"chartroom.example/client/service/v1/servicev1connect"
)

// forEver is longer than a test may take.
const forEver = time.Hour

func listProjects(client *chartroom.Client) error {
	_, err := client.Project.ListProjects(context.Background(), &servicev1.ListProjectsRequest{})
	return err
}

func TestARedirectGetsNeitherTokenNorRequest(t *testing.T) {
	t.Parallel()
	var other, own atomic.Int32
	to := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { other.Add(1) }))
	defer to.Close()
	from := httptest.NewServer(http.HandlerFunc(func(res http.ResponseWriter, req *http.Request) {
		own.Add(1)
		http.Redirect(res, req, to.URL+req.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer from.Close()
	for _, option := range []chartroom.Option{
		chartroom.WithHTTPClient(http.DefaultClient), chartroom.WithHTTPClient(from.Client()),
	} {
		own.Store(0)
		client := chartroom.New(from.URL, "token", option, chartroom.WithRetryFor(forEver))
		secret := &servicev1.CreateSecretRequest{Name: "KEY", Value: "hidden"}
		_, err := client.Secret.CreateSecret(context.Background(), secret)
		if connect.CodeOf(err) != connect.CodeFailedPrecondition || own.Load() != 1 || other.Load() != 0 {
			t.Errorf("%v after %d requests, and %d at the other server", err, own.Load(), other.Load())
		}
	}
}

func TestATokenThatNoHeaderCanCarryIsNotShown(t *testing.T) {
	t.Parallel()
	err := listProjects(chartroom.New("http://127.0.0.1:1", "hidden\nrest", chartroom.WithRetryFor(forEver)))
	if connect.CodeOf(err) != connect.CodeUnauthenticated || strings.Contains(err.Error(), "hidden") {
		t.Error(err)
	}
}

func TestABadCertificateIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.StartTLS()
	defer server.Close()
	err := listProjects(chartroom.New(server.URL, "token", chartroom.WithTimeout(5*time.Second)))
	if err == nil || connections.Load() != 1 {
		t.Errorf("%v after %d connections", err, connections.Load())
	}
}

type failingDialer struct{ attempts atomic.Int32 }

func (f *failingDialer) Do(req *http.Request) (*http.Response, error) {
	f.attempts.Add(1)
	select {
	case <-time.After(5_100 * time.Millisecond):
	case <-req.Context().Done():
	}
	return nil, errors.New("no connection")
}

func TestAStreamIsGivenUpWhereConnectingIsSlow(t *testing.T) {
	t.Parallel()
	dialer := &failingDialer{}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client := chartroom.New(
		"http://127.0.0.1:1", "token", chartroom.WithHTTPClient(dialer), chartroom.WithRetryFor(time.Second),
	)
	for _, err := range client.WatchEvents(ctx, &servicev1.WatchEventsRequest{}) {
		if connect.CodeOf(err) != connect.CodeUnavailable || dialer.attempts.Load() != 2 {
			t.Errorf("%v after %d attempts", err, dialer.attempts.Load())
		}
	}
}

type cutAgents struct {
	servicev1connect.UnimplementedAgentServiceHandler
	opened atomic.Int32
}

func (c *cutAgents) WatchAgentExecution(
	_ context.Context,
	_ *servicev1.WatchAgentExecutionRequest,
	stream *connect.ServerStream[servicev1.WatchAgentExecutionResponse],
) error {
	c.opened.Add(1)
	run := &servicev1.WatchAgentExecutionResponse_AgentExecution{AgentExecution: &servicev1.AgentExecution{}}
	_ = stream.Send(&servicev1.WatchAgentExecutionResponse{News: run})
	return connect.NewError(connect.CodeUnavailable, errors.New("cut"))
}

func TestAStreamIsGivenUpThatIsAlwaysCutBehindTheRun(t *testing.T) {
	t.Parallel()
	agents := &cutAgents{}
	_, handler := servicev1connect.NewAgentServiceHandler(agents)
	server := httptest.NewServer(http.StripPrefix("/api", handler))
	defer server.Close()
	client := chartroom.New(server.URL, "token", chartroom.WithRetryFor(time.Second))
	var last error
	for _, err := range client.WatchAgentExecution(context.Background(), &servicev1.WatchAgentExecutionRequest{}) {
		last = err
		if agents.opened.Load() > 20 {
			break
		}
	}
	if connect.CodeOf(last) != connect.CodeUnavailable {
		t.Errorf("%v after %d streams", last, agents.opened.Load())
	}
}

type recordedEvents struct {
	servicev1connect.UnimplementedEventServiceHandler
	asked chan int64
}

func (r *recordedEvents) WatchEvents(
	_ context.Context,
	request *servicev1.WatchEventsRequest,
	stream *connect.ServerStream[servicev1.WatchEventsResponse],
) error {
	r.asked <- request.GetAfterSequence()
	return stream.Send(&servicev1.WatchEventsResponse{Sequence: 7})
}

func TestAStreamThatIsReadTwiceBeginsTwice(t *testing.T) {
	t.Parallel()
	events := &recordedEvents{asked: make(chan int64, 2)}
	_, handler := servicev1connect.NewEventServiceHandler(events)
	server := httptest.NewServer(http.StripPrefix("/api", handler))
	defer server.Close()
	client := chartroom.New(server.URL, "token")
	request := &servicev1.WatchEventsRequest{AfterSequence: proto.Int64(3)}
	stream := client.WatchEvents(context.Background(), request)
	for range 2 {
		for _, err := range stream {
			if err != nil {
				t.Error(err)
			}
			break
		}
	}
	if asked := []int64{<-events.asked, <-events.asked}; !slices.Equal(asked, []int64{3, 3}) {
		t.Error(asked)
	}
}
