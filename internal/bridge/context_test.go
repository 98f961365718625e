package bridge

import (
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
