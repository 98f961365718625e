package chert

import (
	"bytes"
	"net"
	"sync"
	"time"

	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/exec"
)

// This file handles what the server refuses without calling its handler: it is
// counted, and a bounded part of it is reported to the hook.

// A Refusal is a request that the server has refused without calling its handler,
// or a connection that it had no place for. The type is wire's so that middleware,
// which runs on other servers too, can log it.
type Refusal = wire.Refusal

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
	pending  []Refusal // to be reported; at most maxToldRefusals and one
	running  bool      // a goroutine reports
	since    time.Time // when the current second began
	reported int       // in it
	omitted  int64
	timer    *time.Timer // reports how many were omitted
}

type refusalKey struct {
	status int
	reason string
}

// refused records a refusal. local is the address that the client has connected to,
// or that of the listener; reason is one of a fixed few; head is what the client has
// sent, as far as it is known.
func (s *Server) refused(peer string, local net.Addr, status int, reason string, head []byte) {
	r := &s.refusals
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = make(map[refusalKey]int64)
	}
	r.counts[refusalKey{status, reason}]++
	if s.Refused == nil {
		return
	}
	if now := time.Now(); now.Sub(r.since) >= time.Second {
		r.since, r.reported = now, 0
	}
	// A slow hook gets fewer.
	if r.reported >= maxToldRefusals || len(r.pending) >= maxToldRefusals {
		if r.omitted++; r.omitted == 1 {
			r.timer = time.AfterFunc(time.Second, s.reportOmitted)
		}
		return
	}
	r.reported++
	one := Refusal{RemoteAddr: peer, Status: status, Reason: reason, Line: requestLine(head)}
	if local != nil {
		one.LocalAddr = local.String()
	}
	s.report(one)
}

// reportOmitted reports how many refusals were not reported, if any.
func (s *Server) reportOmitted() {
	r := &s.refusals
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.omitted == 0 {
		return
	}
	r.timer.Stop()
	s.report(Refusal{Omitted: r.omitted})
	r.omitted = 0
}

// report queues a refusal for the hook. refusals.mu is held.
func (s *Server) report(one Refusal) {
	r := &s.refusals
	if r.pending = append(r.pending, one); !r.running {
		r.running = true
		go s.reportQueued()
	}
}

func (s *Server) reportQueued() {
	r := &s.refusals
	for {
		r.mu.Lock()
		all := r.pending
		r.pending = nil
		if r.running = len(all) > 0; !r.running {
			r.mu.Unlock()
			s.lock()
			s.quiet.Broadcast() // for Shutdown
			s.mu.Unlock()
			return
		}
		r.mu.Unlock()
		for _, one := range all {
			s.callRefused(one)
		}
	}
}

func (s *Server) callRefused(one Refusal) {
	exec.Call(func() { s.Refused(one) }, func(e exec.End) {
		if v, ok := e.Panic(); ok {
			s.logf("chert: Refused panicked: %v", v)
		}
		if e.Exited() {
			go s.reportQueued() // this goroutine ends
		}
	})
}

// reporting reports whether a refusal is still to be reported.
func (r *refusals) reporting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running
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
