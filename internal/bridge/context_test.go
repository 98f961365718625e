package bridge

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/peer"
	"github.com/chert-http/chert/internal/testing/race"
)

// peerLink is a Link that has a peer, and nothing else.
type peerLink struct{ conn.Link }

func (peerLink) Peer() peer.Peer { return thePeer }

var thePeer = peer.Parse("127.0.0.1:1")

// A request has its context without a copy of it on the heap.
func TestContextAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("allocations are others there")
	}
	x, c := new(Exchange), &Client{Config: new(Config), Link: peerLink{}}
	if n := testing.AllocsPerRun(100, func() { x.SetContext(); x.Init(c, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if x.Req.Context() != (*reqContext)(x) {
		t.Error("another context")
	}
}

// newContext returns the context of a request whose body has not been read, so that no peer is watched.
func newContext(base context.Context) (*Exchange, context.Context) {
	x := new(Exchange)
	x.SetContext()
	x.Init(&Client{Config: &Config{BaseContext: base}, Link: peerLink{}}, nil)
	x.SetBody(new(Body), false, false, false)
	return x, x.Req.Context()
}

// Goroutines that ask the context of a request that is over, at once and for the first time.
func TestContextTogether(t *testing.T) {
	t.Parallel()
	for range 5000 {
		x, ctx := newContext(context.Background())
		x.gone()
		var all sync.WaitGroup
		var begin atomic.Bool
		for range 2 {
			all.Go(func() {
				for !begin.Load() {
					runtime.Gosched()
				}
				if err := ctx.Err(); err != context.Canceled {
					t.Errorf("Err is %v", err)
				}
			})
		}
		begin.Store(true)
		all.Wait()
	}
}

// The end of BaseContext is seen at once.
func TestContextOfEndedBase(t *testing.T) {
	t.Parallel()
	for range 100 {
		base, cancel := context.WithCancel(context.Background())
		_, ctx := newContext(base)
		if err := ctx.Err(); err != nil {
			t.Fatalf("Err is %v", err)
		}
		if cancel(); ctx.Err() != context.Canceled {
			t.Fatal("Err is nil")
		}
		<-ctx.Done()
	}
}

// What prints a context shows nothing of the request, as with net/http.
func TestContextString(t *testing.T) {
	t.Parallel()
	x, ctx := newContext(context.Background())
	x.Req.Header = map[string][]string{"Authorization": {"secret"}}
	for _, verb := range []string{"%v", "%+v", "%s"} {
		if got := fmt.Sprintf(verb, ctx); got != "context.Background.WithCancel" {
			t.Errorf("%s: %s", verb, got)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if got := fmt.Sprint(ctx); strings.Contains(got, "secret") {
		t.Error(got)
	}
}
