package observe

import (
	"bytes"
	"cmp"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/stats"
)

// This file handles what the server refuses without calling its handler: it is
// counted, and a bounded part of it is reported to the hook.

// Why connections are refused.
const (
	NoRoom  = "too many connections"
	NoShare = "too many connections from one address"
)

// How many refusals are reported per second at most, and how much of each request line.
const (
	maxToldRefusals = 20
	maxRefusedLine  = 256
)

// refusals are those of a server. The hook is called by a goroutine that runs
// while there is something to report, so that no loop waits for it.
type refusals struct {
	mu       sync.Mutex
	counts   map[refusalKey]int64
	pending  []wire.Refusal // to be reported; at most maxToldRefusals and one
	running  bool           // a goroutine reports
	since    time.Time      // when the current second began
	reported int            // in it
	omitted  int64
	timer    *time.Timer // reports how many were omitted
}

type refusalKey struct {
	status int
	reason string
}

// Refuse records a refusal. local is the address that the client has connected to,
// or that of the listener; reason is one of a fixed few; head is what the client has
// sent, as far as it is known.
func (o *Server) Refuse(peer string, local net.Addr, status int, reason string, head []byte) {
	r := &o.refusals
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = make(map[refusalKey]int64)
	}
	r.counts[refusalKey{status, reason}]++
	if *o.Refused == nil {
		return
	}
	if now := time.Now(); now.Sub(r.since) >= time.Second {
		r.since, r.reported = now, 0
	}
	// A slow hook gets fewer.
	if r.reported >= maxToldRefusals || len(r.pending) >= maxToldRefusals {
		if r.omitted++; r.omitted == 1 {
			r.timer = time.AfterFunc(time.Second, o.ReportOmitted)
		}
		return
	}
	r.reported++
	one := wire.Refusal{RemoteAddr: peer, Status: status, Reason: reason, Line: requestLine(head)}
	if local != nil {
		one.LocalAddr = local.String()
	}
	o.report(one)
}

// ReportOmitted reports how many refusals were not reported, if any.
func (o *Server) ReportOmitted() {
	r := &o.refusals
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.omitted == 0 {
		return
	}
	r.timer.Stop()
	o.report(wire.Refusal{Omitted: r.omitted})
	r.omitted = 0
}

// report queues a refusal for the hook. refusals.mu is held.
func (o *Server) report(one wire.Refusal) {
	r := &o.refusals
	if r.pending = append(r.pending, one); !r.running {
		r.running = true
		go o.reportQueued()
	}
}

func (o *Server) reportQueued() {
	r := &o.refusals
	for {
		r.mu.Lock()
		if r.running = len(r.pending) > 0; !r.running {
			r.pending = nil
			r.mu.Unlock()
			o.Reported()
			return
		}
		one := r.pending[0]
		r.pending = r.pending[1:]
		r.mu.Unlock()
		o.callRefused(one) // which may end this goroutine: another has the rest then
	}
}

func (o *Server) callRefused(one wire.Refusal) {
	exec.Call(func() { (*o.Refused)(one) }, func(e exec.End) {
		if v, ok := e.Panic(); ok {
			o.LogSoon("chert: Refused panicked: %v", v) // the log may panic too, and not on this goroutine
		}
		if e.Exited() {
			go o.reportQueued() // this goroutine ends
		}
	})
}

// Reporting reports whether a refusal is still to be reported, or a line to be logged.
func (o *Server) Reporting() bool {
	r := &o.refusals
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running || o.lines.logging()
}

// requestLine returns Refusal's Line.
func requestLine(head []byte) string {
	if i := bytes.IndexAny(head[:min(len(head), maxRefusedLine)], "\r\n"); i >= 0 {
		head = head[:i]
	}
	head = head[:min(len(head), maxRefusedLine)]
	line := make([]byte, 0, 4*len(head))
	for _, c := range head {
		if c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			const hex = "0123456789ABCDEF"
			line = append(line, '\\', 'x', hex[c>>4], hex[c&15])
		} else {
			line = append(line, c)
		}
	}
	return string(line)
}

// fill sets what was refused.
func (r *refusals) fill(sn *stats.Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, n := range r.counts {
		to := &sn.Malformed
		if k.reason == NoRoom || k.reason == NoShare {
			to = &sn.Connections.Refused
		}
		if i := slices.IndexFunc(*to, func(c stats.Count) bool { return c.Name == k.reason }); i >= 0 {
			(*to)[i].N += uint64(n) // of another status
		} else {
			*to = append(*to, stats.Count{Name: k.reason, N: uint64(n)})
		}
	}
	for _, list := range [][]stats.Count{sn.Malformed, sn.Connections.Refused} {
		slices.SortFunc(list, func(a, b stats.Count) int { return cmp.Compare(a.Name, b.Name) })
	}
}
