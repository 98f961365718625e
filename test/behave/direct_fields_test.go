package behave

import (
	"fmt"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
)

// Pragma becomes Cache-Control for direct handlers too.
func TestDirectPragma(t *testing.T) {
	t.Parallel()
	for _, way := range directWays() {
		t.Run(way.name, func(t *testing.T) {
			ts := way.start(t, &chert.Server{Handler: direct.HandlerFunc(func(x *direct.Exchange) { x.Write(x.RequestHeader("Cache-Control")) })})
			if _, body := ts.Dial().Get("/", "Pragma: no-cache"); body != "no-cache" {
				t.Errorf("Cache-Control is %q", body)
			}
		})
	}
}

// An empty Content-Encoding does not prevent the server from guessing a type.
func TestDirectEmptyEncoding(t *testing.T) {
	t.Parallel()
	for _, way := range directWays() {
		t.Run(way.name, func(t *testing.T) {
			ts := way.start(t, &chert.Server{Handler: direct.HandlerFunc(func(x *direct.Exchange) {
				x.SetHeader("Content-Encoding", "")
				x.WriteString("text")
			})})
			if res, _ := ts.Dial().Get("/"); res.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
				t.Errorf("got %v", res.Header)
			}
		})
	}
}

// A field that is present and empty counts as present, over net/http's header
// too.
func TestDirectEmptyField(t *testing.T) {
	t.Parallel()
	for _, way := range directWays() {
		t.Run(way.name, func(t *testing.T) {
			ts := way.start(t, &chert.Server{Handler: direct.HandlerFunc(func(x *direct.Exchange) {
				fmt.Fprint(x, x.RequestHeader("X-Empty") != nil, x.RequestHeader("X-None") != nil)
			})})
			if _, body := ts.Dial().Get("/", "X-Empty:"); body != "true false" {
				t.Errorf("got %s", body)
			}
		})
	}
}
