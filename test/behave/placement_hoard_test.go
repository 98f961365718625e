package behave

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// hoarded is a handler that waits for release if the query asks for it, and
// counts how often it does so on a loop.
type hoarded struct {
	slow, inline atomic.Int64
	release      chan struct{}
}

func (h *hoarded) answer(query string) string {
	where := "pooled"
	if engines.OnDriver() {
		where = "inline"
	}
	switch query {
	case "pause":
		time.Sleep(time.Millisecond) // a slow handler
	case "slow":
		if where == "inline" {
			h.inline.Add(1)
		}
		h.slow.Add(1)
		<-h.release
	}
	return where
}

func (h *hoarded) ServeHTTP(w http.ResponseWriter, r *http.Request) { put(w, h.answer(r.URL.RawQuery)) }

type hoardedDirect struct{ hoarded }

func (h *hoardedDirect) ServeDirect(x *direct.Exchange) bool {
	x.WriteString(h.answer(string(x.RawQuery())))
	return true
}

// However many paths have been classified as quick, or need no proof: only few
// of them cost the loops anything if all become slow at once. Afterwards quick
// handlers run on the loops as before.
func TestPlacementHoarded(t *testing.T) {
	loopsOnly(t)
	for _, tt := range []struct {
		name   string
		direct bool
		path   string
		prove  int // requests for each path
	}{
		{"first segments", false, "/%d", 40},
		{"below an unproven prefix", false, "/q/%d", 70},
		{"with patience", false, "/%d", 300},
		{"direct", true, "/%d", 0},
		{"direct, proven", true, "/%d", 40},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := &hoardedDirect{hoarded{release: make(chan struct{})}}
			s := &chert.Server{Engine: chert.EngineLoops, Handler: &h.hoarded}
			if tt.direct {
				s.Handler = h
			}
			ts := engines.Start(t, s)
			const paths = 150
			c := ts.Dial()
			for i := range paths {
				if tt.prove > 0 {
					path := fmt.Sprintf(tt.path, i)
					c.SetDeadline(time.Now().Add(servertest.Patience)) // of each path, not of all
					go c.Send(strings.Repeat(ask("GET "+path), tt.prove))
					for range tt.prove {
						c.Response("GET")
					}
					c.Get("/q/pause?pause") // so that /q is not proven
				}
			}
			var all []*servertest.Client
			began := time.Now()
			for i := range paths {
				all = append(all, ts.Dial())
				all[i].Send(ask(fmt.Sprintf("GET "+tt.path+"?slow", i)))
			}
			servertest.Eventually(t, "all are slow", func() bool { return h.slow.Load() == paths })
			waited := time.Since(began)
			close(h.release)
			for _, c := range all {
				c.Response("GET")
			}
			// Some are free, and time allows more: four a second.
			if n := h.inline.Load(); n > paths/2+4*int64(waited/time.Second) {
				t.Errorf("%d of %d slow handlers ran on a loop", n, paths)
			} else {
				t.Logf("%d of %d slow handlers ran on a loop", n, paths)
			}
			servertest.Eventually(t, "quick handlers are on the loop again", func() bool {
				c := ts.Dial()
				defer c.Close()
				_, where := c.Get("/good")
				return where == "inline"
			})
		})
	}
}
