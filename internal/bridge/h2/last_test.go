package h2

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/bridge/section"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/takeover"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/stats"
)

// countingLink is a quietLink that counts, and posts to the test.
type countingLink struct {
	quietLink
	shard tally.Shard
	posts int
}

func (l *countingLink) Tally() *tally.Shard   { return &l.shard }
func (l *countingLink) Post(func() conn.Next) { l.posts++ }

// silent is a Source that is only told.
type silent struct{ closed, writable, stopped int }

func (s *silent) Writable() { s.writable++ }
func (s *silent) Stop()     { s.stopped++ }
func (s *silent) Closed()   { s.closed++ }

// outliving is a stream whose answer outlives its handler, which has returned, and that
// has a window of n bytes.
func outliving(n int64) (s *Session, st *stream, l *countingLink, out takeover.Stream, source *silent) {
	s, st, _ = quiet()
	l, source = new(countingLink), new(silent)
	l.shard.Init(nil)
	s.Client.Link = l
	section.InitBudgets(&s.resets, &s.useless, false, 0)
	s.sendWindow.Add(1 << 20)
	st.sendWindow.Add(n)
	st.Last(func(to takeover.Stream) takeover.Source {
		out = to
		return source
	})
	return s, st, l, out, source
}

// An answer that is handed over after the connection was asked to end, as one of several, is stopped like those
// that were there.
func TestLastWhileLeaving(t *testing.T) {
	t.Parallel()
	s, st, _, _, source := outliving(100)
	s.Leaving = func() bool { return true }
	st.finish()
	if s.free(); source.stopped != 1 {
		t.Errorf("stopped %d times", source.stopped)
	}
}

// The deadline of the request's answer, which WriteTimeout sets, is not that of what
// outlives the handler.
func TestLastHasNoDeadline(t *testing.T) {
	t.Parallel()
	s, st, _ := quiet()
	s.sendWindow.Add(100)
	st.sendWindow.Add(100)
	var out takeover.Stream
	st.writeBy = 1
	st.Last(func(to takeover.Stream) takeover.Source {
		out = to
		return new(silent)
	})
	if _, err := out.Offer([]byte("event"), 5, 100); err != nil {
		t.Error(err)
	}
}

// A write deadline that a handler meets before it is looked for is counted by the response, which gets the error.
func TestWriteDeadlineCountsOnce(t *testing.T) {
	t.Parallel()
	for _, met := range []bool{false, true} {
		s, st, _ := quiet()
		l := new(countingLink)
		l.shard.Init(nil)
		s.Client.Link = l
		st.writeBy, s.expiresBy = 1, 1
		want := uint64(1)
		if met {
			if err := st.commit([]byte("head"), nil, nil, false, nil); err == nil {
				t.Error("no error")
			}
			want = 0
		}
		s.expireStreams(2)
		var n tally.Counts
		if n.Read(&l.shard); n.Of(tally.LateWrite) != want || !st.closed() {
			t.Errorf("met: %v: %d counted, %v", met, n.Of(tally.LateWrite), st.state)
		}
		s.Closed(false)
	}
}

// One that is met while the handler makes a head in vain is counted when the stream is reset: the response has not got
// the error yet.
func TestWriteDeadlineMetBySpare(t *testing.T) {
	t.Parallel()
	s, st, _ := quiet()
	l := new(countingLink)
	l.shard.Init(nil)
	s.Client.Link = l
	st.writeBy, s.expiresBy = 1, 1
	s.heads.Add(1)
	st.spare(http.Header{"A": {strings.Repeat("a", 2*maxRest)}})
	s.expireStreams(2)
	var n tally.Counts
	if n.Read(&l.shard); n.Of(tally.LateWrite) != 1 {
		t.Errorf("%d counted", n.Of(tally.LateWrite))
	}
	if err := st.commit([]byte("head"), nil, nil, false, nil); err != bridge.ErrLate {
		t.Error(err)
	}
	s.Closed(false)
}

// A client that opens no window has as long for what has been offered as for any other
// answer, from the moment on that it waits.
func TestLastStalls(t *testing.T) {
	t.Parallel()
	const stall = 1000
	s, st, l, out, source := outliving(10)
	s.cfg.Shared.Limits.WriteStall = stall
	st.become(stateSending)
	l.now = 1
	for range 10 { // more than the window
		out.Offer([]byte("12"), 2, 100)
	}
	if l.posts != 1 { // the owner sets the deadline
		t.Errorf("%d posts", l.posts)
	}
	s.settle(conn.More)
	for _, step := range []struct {
		at     int64
		closed int
	}{{stall, 0}, {1 + stall, 1}} {
		l.now = step.at
		if s.Expired(); source.closed != step.closed {
			t.Errorf("at %d: Closed was called %d times", step.at, source.closed)
		}
	}
}

// When its handler has returned, an open stream keeps no fields: a browser's may be larger
// than all else.
func TestLastSheds(t *testing.T) {
	t.Parallel()
	_, st, _, out, _ := outliving(100)
	st.Shared = true
	st.Req.Header = http.Header{"Cookie": {"a"}}
	st.Res.Header().Set("Set-Cookie", "a")
	st.finish()
	if len(st.Req.Header) > 0 || len(st.Res.Header()) > 0 {
		t.Error(st.Req.Header, st.Res.Header())
	}
	if _, err := out.Offer([]byte("event"), 5, 100); err != nil {
		t.Error(err)
	}
}

// What waits for a client while events are sent is not the rest of an answer, whose time
// is counted, nor is the stream a request in progress.
func TestLastIsNoRequest(t *testing.T) {
	t.Parallel()
	s, st, l, out, source := outliving(2)
	st.Shared, l.now = true, 1
	out.Offer([]byte("event"), 5, 4)
	st.finish()
	s.Running(true, 1<<62, func(stats.Request, int64) { t.Error("a request is in progress") })
	l.now = int64(time.Hour)
	st.sendWindow.Add(100)
	s.settle(conn.More)
	if source.writable != 1 {
		t.Errorf("Writable was called %d times", source.writable)
	}
	var sn stats.Snapshot
	all := new(tally.Counts)
	all.Read(&l.shard)
	if all.Fill(&sn); sn.Write.N() != 0 {
		t.Errorf("%d rests of answers", sn.Write.N())
	}
}

// The owner looks for tunnels while handlers return. The race detector sees it.
func TestTunnelsMeanwhile(t *testing.T) {
	t.Parallel()
	for range 100 {
		s, st, _ := quiet()
		st.Stream().Share()
		var both sync.WaitGroup
		both.Go(st.handOver)
		both.Go(func() { s.stopStreams(0) })
		both.Wait()
	}
}
