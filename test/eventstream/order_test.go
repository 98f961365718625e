package eventstream

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// TestCloseAfterOpen: OnClose comes once, after OnOpen has returned or panicked, also if the response has ended before: by the
// client, or by the program.
func TestCloseAfterOpen(t *testing.T) {
	eachProtocol(t, func(t *testing.T, start func(http.Handler) *site) {
		begun, release, closed := make(chan bool), make(chan bool), make(chan bool, 100)
		var opening atomic.Bool
		onOpen := func(r *http.Request, end func()) {
			opening.Store(true)
			defer opening.Store(false)
			if r.URL.Query().Has("end") {
				end()
			}
			begun <- true
			<-release
			if r.URL.Query().Has("panic") {
				panic(http.ErrAbortHandler)
			}
		}
		onClose := func() {
			if opening.Load() {
				t.Error("OnClose before OnOpen has returned")
			}
			closed <- true
		}
		streams := handler(t, &eventstream.Options{
			OnOpen: func(s *eventstream.Stream, r *http.Request) { onOpen(r, s.Close) }, OnClose: func(*eventstream.Stream) { onClose() },
		})
		waiting := polls(t, &eventstream.PollOptions{
			OnOpen:  func(p *eventstream.Poll, r *http.Request) { onOpen(r, func() { p.Answer([]byte("now")) }) },
			OnClose: func(*eventstream.Poll) { onClose() },
		})
		mux := http.NewServeMux()
		mux.Handle("/stream", streams)
		mux.Handle("/poll", waiting)
		x := start(mux)
		http1 := strings.HasSuffix(t.Name(), "https")
		for _, path := range []string{"/stream", "/poll"} {
			for _, how := range []struct {
				query string
				leave bool
			}{{"", true}, {"end", false}, {"panic", true}, {"end&panic", false}, {"panic", false}} {
				name := fmt.Sprint(path, how)
				ctx, leave := context.WithCancel(context.Background())
				r, _ := http.NewRequestWithContext(ctx, "GET", x.url+path+"?"+how.query, nil)
				r.Close = http1 // on a connection that was used Go's client would try again
				done := make(chan bool)
				go func() {
					defer close(done)
					if res, err := x.client.Do(r); err == nil {
						io.Copy(io.Discard, res.Body)
						res.Body.Close()
					}
				}()
				servertest.Await(t, begun, name+": OnOpen")
				if how.leave {
					leave()
				}
				if how.leave && !http1 && !strings.Contains(t.Name(), "nethttp") {
					servertest.Eventually(t, name+": the end is noticed", func() bool { return streams.Len()+waiting.Len() == 0 })
				}
				time.Sleep(soon) // OnClose, if it is on its way
				release <- true
				servertest.Await(t, closed, name+": OnClose")
				leave()
				<-done
			}
		}
		if n := len(closed); n > 0 {
			t.Errorf("OnClose was called %d times more", n)
		}
	})
}
