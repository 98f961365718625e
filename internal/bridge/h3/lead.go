package h3

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/place"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
)

// This file is who accepts streams. The goroutine that does, the leader, serves those itself whose
// handlers are likely to be quick: then the answers to requests that have come together leave
// together, in few packets. What overstays loses the lead, and another goroutine accepts.

// lead is the state of a leader.
type lead struct {
	// began is when the leader began to serve a stream, of sys.Nanotime; 0 if it serves none.
	// Whoever changes it from that time owns the lead: the leader when it has served the stream,
	// or whoever takes the lead from it.
	began  atomic.Int64
	here   atomic.Pointer[stream] // that stream
	listed atomic.Bool            // the watch looks at the session
	taking sync.Mutex             // held by late
}

// overstay is how long the leader may serve a stream before another goroutine accepts.
const overstay = int64(time.Millisecond)

// accept accepts streams until the connection ends, or another goroutine does. It is the leader.
func (s *Session) accept() {
	var serving *stream     // by the leader
	memo := new(place.Memo) // a leader that has lost the lead may still use it
	over := false
	defer func() {
		switch {
		case over:
		case serving == nil: // a hook has ended its goroutine
			s.Kill()
			go s.accept()
		case serving.endLead(): // a handler has
			go s.accept()
		}
	}()
	for {
		str, err := s.qc.Accept()
		if err != nil {
			over = true
			s.ended()
			return
		}
		st := s.open(str)
		if st == nil {
			continue
		}
		began := sys.Nanotime()
		st.timing.Since, st.memo = began, memo
		st.leads.Store(began)
		s.lead.here.Store(st)
		s.lead.began.Store(began)
		if !s.lead.listed.Load() {
			s.cfg.watch.add(s)
		}
		serving = st
		kept := st.serve()
		if serving = nil; !kept {
			over = true
			return
		}
		s.lead.here.Store(nil) // or an idle connection would keep its last request
	}
}

// takeLead has another goroutine accept if the leader still serves the stream that it began to
// serve at a time. It reports whether it does.
func (s *Session) takeLead(began int64) bool {
	took := s.lead.began.CompareAndSwap(began, 0)
	if took {
		go s.accept()
	}
	return took
}

// late takes the lead from a goroutine that has overstayed.
func (s *Session) late(began, now int64) {
	s.lead.taking.Lock()
	defer s.lead.taking.Unlock()
	st := s.lead.here.Load()
	if s.takeLead(began) && st != nil && st.loses() {
		st.late(time.Duration(now - began))
	}
}

// yield is called before the stream's goroutine waits for the client.
func (st *stream) yield() {
	if !st.waited.Load() { // a store costs more
		st.waited.Store(true)
	}
	if began := st.leads.Swap(0); began != 0 && st.s.takeLead(began) {
		st.loses()
	}
}

// leading reports whether the leader serves the stream.
func (st *stream) leading() bool { return st.leads.Load() != 0 }

// What stream.handler may be.
const (
	unseen   = iota // the leader runs no handler
	overseen        // it does, and late is to know
	lost            // the same, and the lead has been taken from it: it counts as running
)

// oversee has late know of the handler that is about to run for the stream, if the leader runs it.
func (st *stream) oversee() {
	if began := st.leads.Load(); began != 0 {
		st.handler.Store(overseen)
		if st.s.lead.began.Load() != began { // the lead was taken before
			st.loses()
		}
	}
}

// loses counts the handler as running if there is one: the lead has been taken from it.
func (st *stream) loses() bool {
	runs := st.handler.CompareAndSwap(overseen, lost)
	if runs {
		st.s.tally.Add(false, tally.HandlersBegun, 1)
	}
	return runs
}

// unsee ends what oversee has begun: late does nothing with the stream afterwards.
func (st *stream) unsee() {
	switch st.handler.Swap(unseen) {
	case unseen:
		return
	case lost:
		st.s.tally.Add(false, tally.HandlersEnded, 1)
	}
	if began := st.leads.Load(); began == 0 || st.s.lead.began.Load() != began {
		st.s.awaitLate()
	}
}

// awaitLate waits until late, which may be under way, has ended.
func (s *Session) awaitLate() {
	s.lead.taking.Lock()
	defer s.lead.taking.Unlock()
}

// endLead ends the service of the stream by the leader, and reports whether it still is that.
func (st *stream) endLead() bool {
	began := st.leads.Swap(0)
	return began != 0 && st.s.lead.began.CompareAndSwap(began, 0)
}

// watch looks after leaders that serve streams, every millisecond while there are some.
type watch struct {
	mu      sync.Mutex
	listed  []*Session
	running bool
}

func (w *watch) add(s *Session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.lead.listed.Swap(true) {
		return
	}
	w.listed = append(w.listed, s)
	if !w.running {
		w.running = true
		time.AfterFunc(time.Duration(overstay), w.look)
	}
}

// look takes the lead from those that overstay, and forgets those that serve nothing.
func (w *watch) look() {
	now := sys.Nanotime()
	var late []*Session
	w.mu.Lock()
	kept := w.listed[:0]
	for _, s := range w.listed {
		switch began := s.lead.began.Load(); {
		case began == 0:
			s.lead.listed.Store(false)
			continue
		case now-began > overstay:
			late = append(late, s)
		}
		kept = append(kept, s)
	}
	clear(w.listed[len(kept):])
	w.listed = kept
	if w.running = len(kept) > 0; w.running {
		time.AfterFunc(time.Duration(overstay), w.look)
	}
	w.mu.Unlock()
	for _, s := range late {
		if began := s.lead.began.Load(); began != 0 && now-began > overstay {
			s.late(began, now)
		}
	}
}
