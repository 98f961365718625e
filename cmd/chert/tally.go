package main

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/static"
	"github.com/chert-http/chert/stats"
)

// tally counts what the summary at the end reports. It is safe for concurrent use. Bytes are those of bodies that
// were handed to the system; a request is counted when its response has been handed over.
type tally struct {
	shards [shards]struct {
		requests, bytes, client, server atomic.Int64
		_                               [96]byte
	}
	least atomic.Int64 // nanoseconds of the slowest; quicker requests need no lock
	mu    sync.Mutex
	slowest
}

// counted is a request that is counted when its response has been sent. It is pooled.
type counted struct {
	t            *tally
	shard        int
	start        time.Duration // by wire.Clock
	method, path string
}

var allCounted = sync.Pool{New: func() any { return new(counted) }}

// watch returns a Watcher that counts a request, which arrived at start, when its response has been sent.
func (t *tally) watch(shard int, method, path string, start time.Duration) wire.Watcher {
	c := allCounted.Get().(*counted)
	*c = counted{t, shard, start, method, path}
	return c
}

// Keep implements wire.Watcher.
func (c *counted) Keep() { c.path = strings.Clone(c.path[:min(len(c.path), maxPath+1)]) }

// Sent implements wire.Watcher.
func (c *counted) Sent(d wire.Delivery) {
	c.t.count(c.shard, d.Status, d.Body)
	c.t.slow(c.method, c.path, wire.Clock()-c.start)
	*c = counted{}
	allCounted.Put(c)
}

// slowest is the request that took longest.
type slowest struct {
	method, path string // path as showPath makes it
	took         time.Duration
}

// count adds a response. bytes are its body's.
func (t *tally) count(shard, status int, bytes int64) {
	s := &t.shards[shard]
	s.requests.Add(1)
	s.bytes.Add(bytes)
	switch status / 100 {
	case 4:
		s.client.Add(1)
	case 5:
		s.server.Add(1)
	}
}

// slow remembers a request if none has taken longer.
func (t *tally) slow(method, path string, took time.Duration) {
	if int64(took) <= t.least.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if took > t.took {
		// Copies: the request's own strings are part of everything it sent.
		t.slowest = slowest{strings.Clone(method), showPath(path), took}
		t.least.Store(int64(took))
	}
}

// refused returns the number of requests and connections that srv refused without its handler.
func refused(srv *chert.Server) (n int64) {
	sn := srv.Stats()
	for _, of := range [][]stats.Count{sn.Malformed, sn.Connections.Refused} {
		for _, c := range of {
			n += int64(c.N)
		}
	}
	return n
}

// summary returns the text that is printed when the server stops: one to three lines.
func (t *tally) summary(uptime time.Duration, cache static.Stats, refused int64) string {
	var requests, bytes, client, server int64
	for i := range t.shards {
		s := &t.shards[i]
		requests += s.requests.Load()
		bytes += s.bytes.Load()
		client += s.client.Load()
		server += s.server.Load()
	}
	b := fmt.Appendf(nil, "chert: %s and %s in %v", plural(requests, "request"), config.ShowSize(bytes), round(uptime))
	if refused > 0 {
		b = fmt.Appendf(b, "; %d refused", refused)
	}
	if requests == 0 {
		return string(append(b, '\n'))
	}
	b = fmt.Appendf(b, "\nchert: %d answered 4xx, %d answered 5xx", client, server)
	if all := cache.Hits + cache.Misses; all > 0 {
		b = fmt.Appendf(b, "; %.1f %% from the cache", 100*float64(cache.Hits)/float64(all))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.took > 0 {
		b = fmt.Appendf(b, "\nchert: slowest: %s %s in %v", t.method, t.path, round(t.took))
	}
	return string(append(b, '\n'))
}

// maxPath is how many bytes of a path are shown.
const maxPath = 200

// showPath quotes what a client has sent, so that no byte of it controls a terminal. Not by quote: that keeps
// characters that reverse the direction of text.
func showPath(path string) string {
	if len(path) > maxPath {
		return strconv.Quote(path[:maxPath]) + "..."
	}
	return strconv.Quote(path)
}

func plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// round keeps three digits, or whole seconds if it is longer than a minute.
func round(d time.Duration) time.Duration {
	if d >= time.Minute {
		return d.Round(time.Second)
	}
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}
