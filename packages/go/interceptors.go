package chartroom

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"math"
	mathrand "math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"connectrpc.com/connect"

	servicev1 "chartroom.example/client/service/v1"
)

const (
	idempotencyKey = "Idempotency-Key"
	firstPause     = 250 * time.Millisecond
	longestPause   = 5 * time.Second
)

// identity adds the token to each call and stream.
type identity struct{ token string }

func (i identity) write(header http.Header) {
	header.Set("Authorization", "Bearer "+i.token)
	header.Set("User-Agent", "chartroom-go/"+Version)
}

func (i identity) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		i.write(req.Header())
		return next(ctx, req)
	}
}

func (i identity) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		conn := next(ctx, spec)
		i.write(conn.RequestHeader())
		return conn
	}
}

func (identity) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// repetition retries a call that got no response, or one from a server that is stopping, busy or rate limiting. A
// call that may change something has an idempotency key, the same in each attempt, so that it is executed once.
type repetition struct{ timeout, retryFor time.Duration }

func (r repetition) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if _, isSet := ctx.Deadline(); !isSet {
			limited, cancel := context.WithTimeout(ctx, r.timeout)
			defer cancel()
			ctx = limited
		}
		hasEffect := req.Spec().IdempotencyLevel != connect.IdempotencyNoSideEffects
		if hasEffect && req.Header().Get(idempotencyKey) == "" {
			req.Header().Set(idempotencyKey, rand.Text())
		}
		began := time.Now()
		for failures := 1; ; failures++ {
			res, err := next(ctx, req)
			if err == nil || !isTemporary(ctx, err, false) {
				return res, err
			}
			pause := pauseAfter(err, failures)
			if time.Since(began)+pause > r.retryFor || !sleep(ctx, pause) {
				return nil, err
			}
		}
	}
}

func (repetition) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (repetition) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// isTemporary reports whether the same call may succeed later.
func isTemporary(ctx context.Context, err error, isStream bool) bool {
	var untrusted *tls.CertificateVerificationError
	if ctx.Err() != nil || errors.As(err, &untrusted) {
		return false
	}
	switch ReasonOf(err) {
	case servicev1.ErrorReason_ERROR_REASON_UNAVAILABLE, servicev1.ErrorReason_ERROR_REASON_TOO_MANY_CALLS:
		return true
	case servicev1.ErrorReason_ERROR_REASON_UNSPECIFIED:
		code := connect.CodeOf(err)
		if code == connect.CodeUnavailable {
			return true
		}
		if connect.IsWireError(err) {
			return false
		}
		// Over HTTP/1.1, a lost connection cancels its request. A truncated message looks like a malformed one.
		isCut := code == connect.CodeCanceled || code == connect.CodeUnknown
		return isCut || isStream && (code == connect.CodeInternal || code == connect.CodeInvalidArgument)
	}
	return false
}

// pauseAfter returns how long to wait after a number of failures in a row, at least as long as the server asks for.
func pauseAfter(err error, failures int) time.Duration {
	whole := min(longestPause, time.Duration(float64(firstPause)*math.Pow(2, float64(min(failures, 16)-1))))
	asked, _ := strconv.Atoi(FailureOf(err).Metadata["retry_after_seconds"])
	return max(time.Duration(asked)*time.Second, whole/2+mathrand.N(whole/2))
}

// sleep waits, and reports whether the time has passed before the context was done.
func sleep(ctx context.Context, pause time.Duration) bool {
	if end, isSet := ctx.Deadline(); isSet && time.Until(end) < pause {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
