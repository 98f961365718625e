package bridge

import (
	"math/rand/v2"
	"strings"
	"unsafe"

	"github.com/chert-http/chert/stats"
)

// maxTarget is how much of a target is shown, in bytes.
const maxTarget = 2 << 10

// identity makes a number of an address that does not show it: the product with an odd
// number is different for each.
var identity = rand.Uint64() | 1

// Identity returns the ID of a request by the address of what it is.
func Identity(address uint64) uint64 { return address * identity }

func identityOf(p unsafe.Pointer) uint64 { return Identity(uint64(uintptr(p))) }

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
		Protocol: x.Proto.String(), Peer: x.c.Link.Peer(), Way: x.Way, Stage: "handler",
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

// Shown describes a request that has not become an Exchange, of client c; p is unique
// to it.
func (c *Client) Shown(p unsafe.Pointer, method, target string) stats.Request {
	return stats.Request{ID: identityOf(p), Method: shown(method), Target: shown(target), Peer: c.Link.Peer()}
}

func shown(s string) string { return strings.Clone(s[:min(len(s), maxTarget)]) }
