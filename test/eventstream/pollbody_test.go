package eventstream

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// TestPollBody: what a handler has not read of a body is not the next request (RFC 9112
// section 6.3).
func TestPollBody(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		const forgery = "GET /forged HTTP/1.1\r\nHost: h\r\n\r\n"
		length := fmt.Sprint("Content-Length: ", len(forgery))
		for _, duplex := range []bool{false, true} {
			for _, fields := range [][]string{{length}, {length, "Expect: 100-continue"}} {
				opened, paths := make(chan *eventstream.Poll, 10), make(chan string, 10)
				h := polls(t, &eventstream.PollOptions{OnOpen: func(p *eventstream.Poll, r *http.Request) {
					paths <- r.URL.Path
					opened <- p
				}})
				ts := engines.Start(t, fresh(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if duplex { // the server does not read the body before the head is sent
						http.NewResponseController(w).EnableFullDuplex()
					}
					h.ServeHTTP(w, r)
				})))
				c := ts.Dial()
				c.Send(servertest.RawHead(append([]string{"POST / HTTP/1.1", "Host: h"}, fields...)...) + forgery)
				servertest.Await(t, opened, "the poll").Answer([]byte("answer"))
				if _, body := c.Response("POST"); body != "answer" {
					t.Errorf("full duplex %v, %s: %q", duplex, fields, body)
				}
				c.CloseWrite()
				io.Copy(io.Discard, c.R) // how the connection ends does not matter
				if <-paths; len(paths) > 0 {
					t.Errorf("full duplex %v, %s: %s was served", duplex, fields, <-paths)
				}
			}
		}
	})
}

// TestPollForm: the files of a form do not outlive the handler.
func TestPollForm(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		opened, parsed := make(chan *eventstream.Poll, 1), make(chan string, 1)
		h := polls(t, &eventstream.PollOptions{OnOpen: func(p *eventstream.Poll, r *http.Request) { opened <- p }})
		ts := engines.Start(t, fresh(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			parsed <- servertest.ParsedFile(t, r)
			h.ServeHTTP(w, r)
		})))
		c := ts.Dial()
		go c.Send(servertest.Upload("/"))
		name := servertest.Await(t, parsed, "the handler")
		servertest.Await(t, opened, "the poll").Answer([]byte("answer"))
		if _, body := c.Response("POST"); body != "answer" {
			t.Errorf("%q", body)
		}
		servertest.Eventually(t, "the file is removed", func() bool {
			_, err := os.Stat(name)
			return os.IsNotExist(err)
		})
	})
}
