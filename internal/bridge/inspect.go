package bridge

import (
	"math/rand/v2"
	"strings"
	"unsafe"

	"github.com/chert-http/chert/stats"
)

// maxTarget is how much of a target is shown, in bytes.
const maxTarget = 2 << 10

// identity hashes addresses for the IDs of requests, so that an ID does not show its address:
// the product with an odd number is different for each.
var identity = rand.Uint64() | 1

func identityOf(p unsafe.Pointer) uint64 { return uint64(uintptr(p)) * identity }

// Inspect calls f as conn.Inspected.Running does, if x is in progress for client c. Any
// goroutine may call it: the memory is x's while life is held.
func (x *Exchange) Inspect(c *Client, before int64, f func(stats.Request, int64)) {
	x.life.Lock()
	defer x.life.Unlock()
	if !x.over && x.c == c {
		x.Describe(before, f)
	}
}

// Describe is Inspect for a caller that knows that x is in progress. What it reads is
// immutable once the handler may run.
func (x *Exchange) Describe(before int64, f func(stats.Request, int64)) {
	if x.Time.Since >= before {
		return
	}
	method := x.method.String()
	if method == "" {
		method = "(other)"
	}
	r := stats.Request{
		ID: identityOf(unsafe.Pointer(x)), Method: method, Target: shown(x.target), Route: strings.Clone(x.route),
		Protocol: x.Proto.String(), Peer: x.c.Link.Peer().RemoteAddr, Way: x.Way, Stage: "handler",
	}
	if x.Way != stats.Inline {
		switch {
		case !x.is(handling):
			r.Stage = "waiting"
		case x.is(returned):
			r.Stage = "write"
		}
	}
	f(r, x.Time.Since)
}

// Outline makes x, which is new, what Describe shows of another exchange of client c, and
// keeps nothing else of that: its handler has returned, and some of its response is left.
func (x *Exchange) Outline(of *Exchange, c *Client) {
	x.c, x.Time, x.Proto, x.Way, x.method, x.Shared = c, of.Time, of.Proto, of.Way, of.method, of.Shared
	x.target, x.route = shown(of.target), strings.Clone(of.route)
	x.facts.Store(of.facts.Load() & (handling | returned))
}

// Shown describes a request that has not become an Exchange, of client c; p is unique
// to it.
func (c *Client) Shown(p unsafe.Pointer, method, target string) stats.Request {
	from := c.Link.Peer().RemoteAddr
	return stats.Request{ID: identityOf(p), Method: shown(method), Target: shown(target), Peer: from}
}

func shown(s string) string { return strings.Clone(s[:min(len(s), maxTarget)]) }
