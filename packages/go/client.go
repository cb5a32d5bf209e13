// Package chartroom is a client of Chartroom: it retries calls without executing them twice, iterates over lists,
// resumes streams, and returns the reasons of errors.
package chartroom

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"
)

// Client calls a server as the owner of a token; each service of the contract is a field. It may be used by several
// goroutines, and needs no closing.
type Client struct {
	Services
	retryFor time.Duration
}

// Option changes the client that New returns.
type Option func(*settings)

type settings struct {
	http     connect.HTTPClient
	timeout  time.Duration
	retryFor time.Duration
	connect  []connect.ClientOption
}

// WithHTTPClient makes calls with another client than http.DefaultClient, such as one that trusts another
// certificate. It must have no timeout, which would end streams. An *http.Client is copied, since calls follow no
// redirects.
func WithHTTPClient(client connect.HTTPClient) Option {
	return func(made *settings) { made.http = client }
}

// WithTimeout sets how long a call may take, including retries, when its context has no deadline. The default is a
// minute. Streams have no timeout.
func WithTimeout(timeout time.Duration) Option {
	return func(made *settings) { made.timeout = timeout }
}

// WithRetryFor sets for how long a failing call or stream is retried. The default is 30 seconds. 0 tries once.
func WithRetryFor(retryFor time.Duration) Option {
	return func(made *settings) { made.retryFor = retryFor }
}

// WithConnect adds options of Connect, such as interceptors, which run for each attempt, or connect.WithSendGzip.
func WithConnect(options ...connect.ClientOption) Option {
	return func(made *settings) { made.connect = append(made.connect, options...) }
}

// New returns a client of the server at an address, such as https://chartroom.example.org. It connects at its first
// call. If the token cannot be sent in a header, such as one with a line break, every call fails.
func New(address, token string, options ...Option) *Client {
	made := settings{http: http.DefaultClient, timeout: time.Minute, retryFor: 30 * time.Second}
	for _, option := range options {
		option(&made)
	}
	url := strings.TrimSuffix(strings.TrimRight(address, "/"), "/api") + "/api"
	calls := connect.WithInterceptors(
		repetition{timeout: made.timeout, retryFor: made.retryFor},
		identity{token: token},
	)
	all := append([]connect.ClientOption{calls}, made.connect...)
	return &Client{Services: newServices(newSender(made.http, token), url, all...), retryFor: made.retryFor}
}

// sender makes each attempt. It follows no redirect, which would send the token and the request to another server or
// without encryption.
type sender struct {
	client  connect.HTTPClient
	isValid bool
}

func newSender(client connect.HTTPClient, token string) sender {
	if plain, isPlain := client.(*http.Client); isPlain {
		direct := *plain
		direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		client = &direct
	}
	isOther := func(char rune) bool { return char <= ' ' || char > '~' }
	return sender{client: client, isValid: !strings.ContainsFunc(token, isOther)}
}

func (s sender) Do(req *http.Request) (*http.Response, error) {
	if !s.isValid {
		// An error of net/http would count as a connection error.
		err := errors.New("the token has characters that no token has, such as the end of a line")
		return nil, connect.NewError(connect.CodeUnauthenticated, err)
	}
	res, err := s.client.Do(req)
	if err != nil || res.StatusCode < 300 || res.StatusCode > 399 {
		return res, err
	}
	_ = res.Body.Close()
	err = fmt.Errorf("the server redirects to %q, which is not followed", res.Header.Get("Location"))
	return nil, connect.NewError(connect.CodeFailedPrecondition, err)
}
