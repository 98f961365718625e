package bridge

import (
	"fmt"
	"math/rand/v2"
	"net/http"

	"github.com/chert-http/chert/direct"
)

// Refusal is why a request is answered without the handler.
type Refusal uint8

const (
	NotRefused     Refusal = iota
	ForExpectation         // one other than 100-continue (RFC 9110 section 10.1.1)
	ForRoom                // Server.MaxHandlers of them run, and too many requests wait
)

// Report calls the hook for a request that was refused, after it has been counted: the
// hook may look at the statistics.
func (c *Client) Report(why Refusal, head []byte) {
	if why == ForRoom {
		c.Refuse(http.StatusServiceUnavailable, "too many requests wait for a handler", head)
	} else {
		c.Refuse(http.StatusExpectationFailed, "unknown expectation", head)
	}
}

// Busy is the response of a server without a free slot for a handler.
var Busy direct.Handler = busy{}

type busy struct{}

var (
	busyText = direct.NewResponse(http.StatusServiceUnavailable, http.Header{
		"Content-Type": {"text/plain; charset=utf-8"}, "Retry-After": {"1"},
	}, []byte("503 Service Unavailable\n"))
	// A browser's EventSource never connects again after another status than 200 (WHATWG
	// HTML section 9.2.3). So it gets an empty stream, and a time to come back.
	busyStreams = func() (all [16]*direct.Response) {
		for i := range all {
			all[i] = direct.NewResponse(http.StatusOK, http.Header{
				"Content-Type": {eventStream}, "Cache-Control": {"no-store"},
			}, fmt.Appendf(nil, "retry: %d\n\n", 1000+200*i))
		}
		return all
	}()
)

const eventStream = "text/event-stream"

func busyStream() *direct.Response { return busyStreams[rand.N(len(busyStreams))] }

func (busy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.Header.Get("Accept") == eventStream {
		busyStream().ServeHTTP(w, r)
	} else {
		busyText.ServeHTTP(w, r)
	}
}

func (busy) ServeDirect(x *direct.Exchange) bool {
	if string(x.Method()) == http.MethodGet && string(x.RequestHeader("Accept")) == eventStream {
		return busyStream().ServeDirect(x)
	}
	return busyText.ServeDirect(x)
}
