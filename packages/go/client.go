// Package chartroom is a client of Chartroom: it repeats calls without doing them twice, walks lists, resumes streams,
// and tells the reasons of errors.
package chartroom

import (
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

// Option changes what New makes.
type Option func(*settings)

type settings struct {
	http     connect.HTTPClient
	timeout  time.Duration
	retryFor time.Duration
	connect  []connect.ClientOption
}

// WithHTTPClient makes calls with another client than http.DefaultClient, such as one that trusts another certificate. It
// must have no timeout of its own, which would end streams.
func WithHTTPClient(client connect.HTTPClient) Option {
	return func(made *settings) { made.http = client }
}

// WithTimeout says how long a call may take with its repetitions where its context has no deadline; a minute unless it is
// set. Streams have no time.
func WithTimeout(timeout time.Duration) Option {
	return func(made *settings) { made.timeout = timeout }
}

// WithRetryFor says for how long a call or a stream that fails is tried again; 30 seconds unless it is set. 0 tries once.
func WithRetryFor(retryFor time.Duration) Option {
	return func(made *settings) { made.retryFor = retryFor }
}

// WithConnect adds options of Connect, such as interceptors, which run for each attempt, or connect.WithSendGzip.
func WithConnect(options ...connect.ClientOption) Option {
	return func(made *settings) { made.connect = append(made.connect, options...) }
}

// New returns a client of the server at an address, such as https://chartroom.example.org. It connects at its first call.
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
	return &Client{Services: newServices(made.http, url, all...), retryFor: made.retryFor}
}
