//go:build linux || darwin

package conn

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/sys"
)

// answer is one that may stall: bytes, and then a part of a file. It belongs to
// the owner, as the Proto's part of the connection does.
type answer struct {
	bytes        []byte
	file         *os.File
	offset, left int64
	copying      bool
	verdict      Verdict // at its end
	under        bool    // Serve has begun with it
	// resumed, when not nil, is called when Serve is called again for it.
	resumed func(f *fake)
	turns   int // how often Serve was called
}

// serve is Serve once the answer is there.
func (a *answer) serve(f *fake) Verdict {
	if a.turns++; a.turns > 1 && a.resumed != nil {
		a.resumed(f)
	}
	a.under = true
	v := a.send(f)
	if v != Stalled {
		*a = answer{}
	}
	return v
}

func (a *answer) send(f *fake) Verdict {
	for {
		if len(a.bytes) > 0 {
			n, err := f.TryWrite(a.bytes, nil, a.left > 0)
			if a.bytes = a.bytes[n:]; err != nil {
				return failed(err)
			}
			if len(a.bytes) > 0 {
				return Stalled
			}
		}
		if a.left == 0 {
			return a.verdict
		}
		if a.copying {
			a.bytes = make([]byte, min(a.left, 10_000))
			if _, err := a.file.ReadAt(a.bytes, a.offset); err != nil {
				return Close
			}
			a.offset += int64(len(a.bytes))
			a.left -= int64(len(a.bytes))
			continue
		}
		sent, ok, err := f.TrySendFile(a.file, a.offset, a.left)
		a.offset += sent
		a.left -= sent
		switch {
		case err != nil:
			return failed(err)
		case !ok:
			a.copying = true
		case a.left > 0:
			return Stalled
		}
	}
}

// failed is how a connection ends that would not take its answer.
func failed(err error) Verdict {
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		return Reset
	}
	return Close
}

// stalling is a fake whose answers may stall. A line "bytes N" is answered with
// N bytes, "file N" with N bytes of a file, "full" with as many as the socket
// takes and "end N" as "bytes N" with the end behind it, other lines by last.
type stalling struct {
	*fake
	answer answer
	filled atomic.Int64 // how many bytes the answer to "full" had
}

const stalledSize = 8 << 20

// stalledBytes are what the answers begin with, and the file.
var stalledBytes = bytes.Repeat([]byte("0123456789abcdef, 10 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e 1f\n-"), stalledSize/67+1)[:stalledSize]

// stalledFile is one of stalledSize bytes.
func stalledFile(t testing.TB) *os.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, stalledBytes, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

func newStalling(t testing.TB) *stalling {
	file := stalledFile(t)
	s := &stalling{fake: &fake{quick: true}}
	s.fed = func(f *fake, line string) {
		if s.answer.under {
			t.Errorf("%q is fed before the answer to the last is out", line)
		}
	}
	s.serve = func(f *fake, line string) Verdict {
		if s.answer.under {
			return s.answer.serve(f)
		}
		a := &s.answer
		n := int64(0)
		what, number, _ := strings.Cut(line, " ")
		fmt.Sscan(number, &n)
		switch what {
		case "bytes":
			a.bytes = stalledBytes[:n]
		case "end":
			a.bytes, a.verdict = stalledBytes[:n], Close
		case "file":
			a.bytes, a.file, a.left = []byte("a file: "), file, n
		case "full":
			for {
				n, err := f.TryWrite(stalledBytes[:64<<10], nil, true)
				s.filled.Add(int64(n))
				if err != nil {
					return Close
				}
				if n < 64<<10 {
					return More
				}
			}
		default:
			return last(f, line)
		}
		return a.serve(f)
	}
	return s
}

// wantAnswer reads the answer to a line.
func (c *client) wantAnswer(line string) {
	c.t.Helper()
	n := 0
	what, number, _ := strings.Cut(line, " ")
	fmt.Sscan(number, &n)
	switch what {
	case "bytes", "end":
		c.want(string(stalledBytes[:n]))
	case "file":
		c.want("a file: " + string(stalledBytes[:n]))
	default:
		c.want(line + "\n")
	}
}

// stuck waits until the loop has f, which waits for its client.
func (r *rig) stuck(f *fake) {
	r.t.Helper()
	eventually(r.t, "the answer has stalled", func() (ok bool) {
		r.on(func() { ok = f.phase == sending && f.state.Load()&(owned|writable) == 0 })
		return ok
	})
}

// Answers that the socket does not take wait without a handler, and come whole
// and in order.
func TestStalled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		why   string
		lines []string
	}{
		{"bytes", []string{"bytes 8000000"}},
		{"a file", []string{"file 8388608"}},
		{"small ones behind", []string{"file 8388608", "a", "b", "c"}},
		{"small ones before", []string{"a", "b", "file 8388608"}},
		{"large ones", []string{"bytes 3000000", "file 3000000", "bytes 3000000", "file 3000000"}},
		{"both", []string{"a", "bytes 3000000", "b", "c", "file 4000000", "d", "bytes 0", "file 0", "file 1", "bytes 1", "e"}},
		{"the end behind", []string{"a", "end 8000000"}},
	} {
		for _, quick := range []bool{true, false} {
			for _, whole := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, quick %v, whole %v", tt.why, quick, whole), func(t *testing.T) {
					t.Parallel()
					r := newRig(t, Limits{})
					s := newStalling(t)
					s.quick, s.whole = quick, whole
					c := r.open(s.fake)
					for range 2 {
						c.send(strings.Join(tt.lines, "\n") + "\n")
						r.stuck(s.fake)
						r.alive()
						for _, line := range tt.lines {
							c.wantAnswer(line)
						}
						if strings.HasPrefix(tt.lines[len(tt.lines)-1], "end") {
							c.ended()
							return
						}
					}
					c.closeWrite()
					c.ended()
					await(t, s.closed, "Closed")
				})
			}
		}
	}
}

// One byte after another is read, and one after another sent.
func TestStalledPieces(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	s := newStalling(t)
	c := r.open(s.fake)
	for _, b := range []byte("x\nfile 1000000\ny\n") {
		c.send(string(b))
	}
	c.want("x\na file: ")
	r.stuck(s.fake)
	for rest := stalledBytes[:1_000_000]; len(rest) > 0; rest = rest[min(len(rest), 997):] {
		c.want(string(rest[:min(len(rest), 997)]))
	}
	c.want("y\n")
}

// An answer that is held when the socket is full waits with the one behind it.
func TestStalledHeld(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"read", "kill", "close"} {
		for _, next := range []string{"bytes 100000", "file 100"} {
			t.Run(end+", "+next, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, Limits{})
				s := newStalling(t)
				// Not TCP, which would take more behind "full" and not stall.
				c := r.open(s.fake)
				c.send("full\nheld\n" + next + "\n" + strings.Repeat(" ", 100))
				// On a busy machine "full" may take so long that the loop is taken
				// from it. Then a goroutine waits with what is held.
				eventually(t, "the answer waits", func() (ok bool) {
					r.on(func() {
						state := s.state.Load()
						ok = s.phase == sending && state&(owned|writable) == 0 || state&(owned|waitWrite) == owned|waitWrite
					})
					return ok
				})
				switch end {
				case "read":
					c.want(string(fullOf(int(s.filled.Load()))))
					c.want("held\n")
					c.wantAnswer(next)
				case "kill":
					r.loop.Post(s.place, Kill)
				case "close":
					c.Close()
				}
				if end != "read" {
					await(t, s.closed, "Closed")
				}
			})
		}
	}
}

// fullOf is the answer to "full" of n bytes.
func fullOf(n int) []byte {
	return bytes.Repeat(stalledBytes[:64<<10], n/(64<<10)+1)[:n]
}

// What the server and the client may do while an answer is stalled.
func TestStalledEnds(t *testing.T) {
	t.Parallel()
	const line = "file 8388608"
	for _, tt := range []struct {
		name string
		do   func(r *rig, s *stalling, c *client)
	}{
		{"kill", func(r *rig, s *stalling, c *client) {
			r.loop.Post(s.place, Kill)
			r.loop.Post(s.place, Kill)
		}},
		{"kill behind a turn", func(r *rig, s *stalling, c *client) {
			r.on(func() {
				s.Ready(2) // Writable, so to speak: Serve is queued
				s.Mail(Kill)
			})
		}},
		{"drain", func(r *rig, s *stalling, c *client) {
			r.loop.Post(s.place, Drain)
			r.stuck(s.fake)
			c.wantAnswer(line)
			c.ended()
		}},
		{"drain with a request behind", func(r *rig, s *stalling, c *client) {
			c.send("next\n")
			r.loop.Post(s.place, Drain)
			c.wantAnswer(line)
			c.want("next\n")
			c.ended()
		}},
		{"reset", func(r *rig, s *stalling, c *client) {
			c.Conn.(*net.TCPConn).SetLinger(0)
			c.Close()
		}},
		{"close over unread bytes", func(r *rig, s *stalling, c *client) { c.Close() }},
		{"half-close", func(r *rig, s *stalling, c *client) {
			c.closeWrite()
			eventually(r.t, "the FIN is seen", func() bool { return s.state.Load()&peerClosed != 0 })
			r.stuck(s.fake)
			c.wantAnswer(line)
			c.ended()
		}},
		{"half-close with a request before", func(r *rig, s *stalling, c *client) {
			c.send("next\nnot whole")
			c.closeWrite()
			c.wantAnswer(line)
			c.want("next\ncut\n")
			c.ended()
		}},
		{"half-close, then a reset", func(r *rig, s *stalling, c *client) {
			c.closeWrite()
			eventually(r.t, "the FIN is seen", func() bool { return s.state.Load()&peerClosed != 0 })
			c.Conn.(*net.TCPConn).SetLinger(0)
			c.Close()
		}},
		{"the handler ends its goroutine", func(r *rig, s *stalling, c *client) {
			r.on(func() { s.answer.resumed = func(*fake) { runtime.Goexit() } })
			io.Copy(io.Discard, c.r)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Limits{})
			s := newStalling(t)
			fd, nc := tcpPair(t)
			c := r.start(s.fake, fd, nc)
			c.send(line + "\n")
			r.stuck(s.fake)
			tt.do(r, s, c)
			await(t, s.closed, "Closed")
			r.alive()
		})
	}
}

// CloseIdle is not for connections whose answer is stalled: they go on.
func TestStalledIsNotIdle(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	s := newStalling(t)
	c := r.open(s.fake)
	c.send("file 8388608\n")
	r.stuck(s.fake)
	r.on(func() { r.loop.Broadcast(CloseIdle) })
	c.wantAnswer("file 8388608")
	c.send("next\n")
	c.want("next\n")
}

// An answer that goes on may take long, and loses the loop like any other.
func TestStalledOverstays(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	s := newStalling(t)
	c := r.open(s.fake)
	for range 3 {
		c.send("file 8388608\nnext\n")
		r.stuck(s.fake)
		var lost atomic.Int32
		r.on(func() {
			s.answer.resumed = func(f *fake) {
				for f.Outcome() == RanInline {
					runtime.Gosched()
				}
				lost.Add(1)
			}
		})
		c.wantAnswer("file 8388608")
		c.want("next\n")
		if lost.Load() == 0 {
			t.Error("Serve was not called again")
		}
		r.alive()
	}
}

// A client that takes nothing is cut off, one that takes something is not. The
// time itself is the timer's affair: Expire is called in its place.
func TestStalledExpires(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	s := newStalling(t)
	c := r.open(s.fake)
	c.send("file 8388608\n")
	r.stuck(s.fake)
	expire := func() (is phase) {
		r.on(func() {
			if s.state.Load()&owned != 0 || s.phase != sending {
				t.Error("the answer goes on")
				return
			}
			s.deadline = 0
			s.Expire()
			is = s.phase
		})
		return is
	}
	c.want("a file: ")
	rest := stalledBytes
	for range 3 {
		// Less than makes the socket writable.
		var before, now int32
		r.on(func() { before = s.queued })
		for now = before; now >= before; r.on(func() { now = int32(sys.Queued(int(s.fd))) }) {
			c.want(string(rest[:1000]))
			rest = rest[1000:]
		}
		if is := expire(); is != sending {
			t.Fatalf("a client that drips is cut off: phase %d", is)
		}
	}
	if is := expire(); is != closed {
		t.Errorf("one that has stopped is not: phase %d", is)
	}
	await(t, s.closed, "Closed")
}

// The timer does end a stalled answer, by a reset.
func TestStalledTimes(t *testing.T) {
	t.Parallel()
	moment := int64(30 * time.Millisecond)
	for _, tt := range []struct {
		name     string
		lim      Limits
		deadline bool
	}{
		{"stall", Limits{WriteStall: moment}, false},
		{"deadline", Limits{}, true},
		{"deadline without a stall time", Limits{WriteStall: -1}, true},
		{"deadline beyond the stall time", Limits{WriteStall: moment}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, tt.lim)
			s := newStalling(t)
			serve := s.serve
			s.serve = func(f *fake, line string) Verdict {
				if tt.deadline && !s.answer.under {
					f.SetWriteDeadline(time.Now().Add(time.Duration(2 * moment)))
				}
				return serve(f, line)
			}
			fd, nc := tcpPair(t)
			c := r.start(s.fake, fd, nc)
			c.send("file 8388608\n")
			await(t, s.closed, "Closed")
			if n, err := io.Copy(io.Discard, c); n >= stalledSize || err == nil {
				t.Errorf("got %d bytes and %v, want fewer and a reset", n, err)
			}
		})
	}
}

// A deadline that is over counts when the socket takes more, too.
func TestStalledDeadlineOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	s := newStalling(t)
	c := r.open(s.fake)
	c.send("file 8388608\n")
	r.stuck(s.fake)
	r.on(func() { s.SetWriteDeadline(time.Now().Add(-time.Second)) })
	n, _ := io.Copy(io.Discard, c.r)
	if n >= stalledSize {
		t.Errorf("all %d bytes came", n)
	}
	await(t, s.closed, "Closed")
}

// A stalled answer has no slot, and needs none to go on; what comes behind it
// does.
func TestStalledSlots(t *testing.T) {
	t.Parallel()
	slots := loop.NewSlots(1, 10)
	r := newRig(t, Limits{Slots: slots})
	cr := &crowd{r, slots, make(chan string, 10), make(chan bool)}
	var all []*stalling
	var clients []*client
	for range 5 {
		s := newStalling(t)
		all, clients = append(all, s), append(clients, r.open(s.fake))
		clients[len(all)-1].send("file 8388608\nnext\n")
		r.stuck(s.fake)
	}
	cr.empty(1)
	r.alive()
	blocker := r.open(&fake{serve: cr.serve})
	blocker.send("blocker\n")
	cr.runs("blocker")
	for i, s := range all {
		clients[i].wantAnswer("file 8388608")
		eventually(t, "the next one waits for a slot", func() (ok bool) {
			r.on(func() { ok = s.phase == reading && s.state.Load()&owned != 0 && !s.act.slot })
			return ok
		})
	}
	close(cr.release)
	blocker.want("blocker\n")
	for _, c := range clients {
		c.want("next\n")
	}
	cr.empty(1)
	// Those that are killed have none to give back.
	for i, s := range all {
		clients[i].send("file 8388608\n")
		r.stuck(s.fake)
		r.loop.Post(s.place, Kill)
		await(t, s.closed, "Closed")
	}
	cr.empty(1)
}

// A file that ends early, and one that is none.
func TestTrySendFileErrors(t *testing.T) {
	t.Parallel()
	if !sys.HaveSendfile {
		t.Skip("no sendfile here")
	}
	file := stalledFile(t)
	folder, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	gone := stalledFile(t)
	gone.Close()
	for _, tt := range []struct {
		why       string
		file      *os.File
		offset, n int64
		sent      int64
		ok        bool
		err       error
	}{
		{"whole", file, 0, 100, 100, true, nil},
		{"the end", file, stalledSize - 10, 10, 10, true, nil},
		{"beyond the end", file, stalledSize - 10, 11, 10, true, io.ErrUnexpectedEOF},
		{"behind the end", file, stalledSize + 1, 1, 0, true, io.ErrUnexpectedEOF},
		{"far behind the end", file, 1 << 40, 1, 0, true, io.ErrUnexpectedEOF},
		{"a folder", folder, 0, 100, 0, false, nil},
		{"closed", gone, 0, 100, 0, true, sys.Errno(9)},
	} {
		r := newRig(t, Limits{})
		c := r.open(&fake{quick: true, serve: func(f *fake, line string) Verdict {
			sent, ok, err := f.TrySendFile(tt.file, tt.offset, tt.n)
			if sent != tt.sent || ok != tt.ok || !errors.Is(err, tt.err) {
				t.Errorf("%s: got %d, %v, %v", tt.why, sent, ok, err)
			}
			return Close
		}})
		c.send("x\n")
		if b, err := io.ReadAll(c); int64(len(b)) != tt.sent {
			t.Errorf("%s: %d bytes came, %v", tt.why, len(b), err)
		}
	}
}

// No more than sendTurn goes out in one go, so that others have their turn.
func TestSendTurn(t *testing.T) {
	t.Parallel()
	if !sys.HaveSendfile {
		t.Skip("no sendfile here")
	}
	r := newRig(t, Limits{})
	s := newStalling(t)
	var most atomic.Int64
	serve := s.serve
	s.serve = func(f *fake, line string) Verdict {
		v := serve(f, line)
		if n := stalledSize - s.answer.left; v == Stalled && n-most.Load() > sendTurn {
			t.Errorf("%d bytes in one go", n-most.Load())
		} else if v == Stalled {
			most.Store(n)
		}
		return v
	}
	c := r.open(s.fake)
	c.send("file 8388608\n")
	c.wantAnswer("file 8388608")
	if n := s.runs.Load(); n < stalledSize/sendTurn {
		t.Errorf("it took %d goes", n)
	}
}
