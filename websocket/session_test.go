package websocket

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/link"
	"github.com/chert-http/chert/internal/takeover"
	"github.com/chert-http/chert/internal/wsdeflate"
	"github.com/chert-http/chert/internal/wsframe"
)

// stuckLink is a fakeLink on a loop whose client reads nothing.
type stuckLink struct {
	fakeLink
	held int
	now  int64
}

func (l *stuckLink) Now() int64 { return 1 + l.now }

func (l *stuckLink) Quick() bool { return true }

func (l *stuckLink) Offer(a, b []byte, limit int) (bool, error) {
	n := len(a) + len(b)
	if limit >= 0 && l.held > limit/2 && l.held > limit-n {
		return true, takeover.ErrFull
	}
	l.held += n
	l.fakeLink.Offer(a, b, limit)
	return limit >= 0 && l.held > limit/2, nil
}

// stuck opens a connection on a stuckLink.
func stuck(t *testing.T, o *Options) (*session, *stuckLink) {
	t.Helper()
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	l := new(stuckLink)
	l.s = (*session)(&Conn{h: h, link: l})
	return l.s, l
}

func fromClient(op wsframe.Opcode, compressed bool, p string) []byte {
	h := wsframe.Header{Fin: true, RSV1: compressed, Op: op, Masked: true, Length: int64(len(p))}
	return append(h.Append(nil), p...)
}

// TestGathered: what Send has accepted is sent, also if a Writable comes after another
// goroutine's large message that it does not concern.
func TestGathered(t *testing.T) {
	t.Parallel()
	var l *stuckLink
	s, l := stuck(t, &Options{OnMessage: func(c *Conn, typ Type, p []byte) {
		l.held = 2 * defaultMaxUnsent
		(*session)(c).Writable()
		if err := c.Send(typ, p); err != nil {
			t.Error(err)
		}
	}})
	l.in = fromClient(wsframe.Text, false, "hello")
	if next := s.Data(false); next != link.More {
		t.Error(next)
	}
	if string(l.sent) != "\x81\x05hello" {
		t.Errorf("%q was sent", l.sent)
	}
	if c := s.conn(); c.Send(TypeText, []byte("more")) != ErrSlow || !c.Congested() {
		t.Error("more is gathered")
	}
}

// TestPingBeforeIdle: unless the program says otherwise, a quiet client is asked before it is closed.
func TestPingBeforeIdle(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ ping, idle, want time.Duration }{
		{0, 0, 50 * time.Second},
		{0, -1, 50 * time.Second},
		{0, time.Hour, 50 * time.Second},
		{0, time.Minute, 30 * time.Second},
		{time.Minute, time.Second, time.Minute},
		{-1, time.Second, 0},
	} {
		h, err := New(&Options{PingInterval: tt.ping, IdleTimeout: tt.idle})
		if err != nil {
			t.Fatal(err)
		}
		if got := time.Duration(h.ping); got != tt.want {
			t.Errorf("PingInterval %v, IdleTimeout %v: %v, want %v", tt.ping, tt.idle, got, tt.want)
		}
	}
}

// TestIdleFromCode: a client is silent for as long as nothing has come from it since the code returned.
func TestIdleFromCode(t *testing.T) {
	t.Parallel()
	const idle = 1000
	var l *stuckLink
	s, l := stuck(t, &Options{IdleTimeout: idle, PingInterval: -1, OnMessage: func(*Conn, Type, []byte) { l.now += 3 * idle }})
	l.in = fromClient(wsframe.Text, false, "hello")
	s.Data(false)
	for _, want := range []link.Next{link.More, link.Linger} {
		l.now += idle - 1
		if next := s.Expired(); next != want {
			t.Errorf("%d ns after the code: %d, want %d", l.now-3*idle, next, want)
		}
	}
}

// TestSlowAfterClose: what ends a connection that was closed is the client's answer, also if
// a message is sent then for which the client is too slow.
func TestSlowAfterClose(t *testing.T) {
	t.Parallel()
	codes := make(chan Code, 1)
	s, l := stuck(t, &Options{Slow: SlowClose, OnClose: func(_ *Conn, code Code, _ string) { codes <- code }})
	c := s.conn()
	c.Close(4000, "bye")
	if err := c.Send(TypeText, make([]byte, 1<<20)); err != net.ErrClosed {
		t.Error(err)
	}
	for _, f := range l.posted {
		if next := f(); next != link.More {
			t.Errorf("what was posted requests %d", next)
		}
	}
	l.in = fromClient(wsframe.Close, false, "\x0f\xa0")
	if next := s.Data(false); next != link.Close {
		t.Error(next)
	}
	s.Closed(false)
	if code := <-codes; code != 4000 {
		t.Errorf("OnClose has code %d", code)
	}
}

// TestPongs: what waits of Pongs is bounded, whatever MaxUnsent is.
func TestPongs(t *testing.T) {
	t.Parallel()
	for _, most := range []int{-1, 0, 16 << 20} {
		s, l := stuck(t, &Options{MaxUnsent: most})
		for range 1000 {
			l.in = bytes.Repeat(fromClient(wsframe.Ping, false, strings.Repeat("x", 100)), batch)
			s.Data(false)
		}
		if l.held > maxPongs {
			t.Errorf("MaxUnsent %d: %d bytes wait", most, l.held)
		}
		if s.rare == nil || !s.rare.owes {
			t.Error("the last Ping is forgotten")
		}
	}
}

// TestSlice: quick code that many messages of one connection call has its turns.
func TestSlice(t *testing.T) {
	t.Parallel()
	got := 0
	s, l := stuck(t, &Options{OnMessage: func(*Conn, Type, []byte) { time.Sleep(slice / clockEvery); got++ }})
	l.in = bytes.Repeat(fromClient(wsframe.Text, false, "a"), batch)
	if next := s.Data(false); next != link.Requeue || got > 2*clockEvery {
		t.Errorf("%d messages in a turn; %d", got, next)
	}
}

// TestInlineInflate: messages that take long to inflate do not do so on a loop, and many
// of them have their turns.
func TestInlineInflate(t *testing.T) {
	t.Parallel()
	got := 0
	open := func() (*session, *stuckLink) {
		s, l := stuck(t, &Options{OnMessage: func(*Conn, Type, []byte) { got++ }, Compression: new(Compression)})
		s.reader.Deflate, s.deflate = true, &deflate{params: wsdeflate.Params{Bits: 12, ClientBits: 12}}
		return s, l
	}
	s, l := open()
	const emptyBlock = "\x00\x00\x00\xff\xff"
	l.in = fromClient(wsframe.Binary, true, strings.Repeat(emptyBlock, inlineDeflated/len(emptyBlock)+1)+"\x00")
	if next := s.Data(false); next != link.Elsewhere || got != 0 {
		t.Fatalf("a message of empty blocks: %d, %d messages", next, got)
	}
	if next := s.Data(false); got != 1 {
		t.Error(got, "messages", next)
	}
	for _, tt := range []struct {
		size, most int
	}{{inlineInflate, 1}, {inlineInflate / 4, 4}, {10, batch}} {
		s, l = open()
		z := string(wsdeflate.Deflate(nil, make([]byte, tt.size), nil, 12))
		l.in = bytes.Repeat(fromClient(wsframe.Binary, true, z), 3*batch)
		for range 2 {
			got = 0
			if next := s.Data(false); next != link.Requeue || got > tt.most || got < min(tt.most/2, clockEvery) {
				t.Errorf("%d messages of %d bytes in a turn, want %d; %d", got, tt.size, tt.most, next)
			}
		}
	}
}

// Code that is only just quick does not keep the loop for many of its messages.
func TestMessagesTakeTurns(t *testing.T) {
	t.Parallel()
	got := 0
	s, l := stuck(t, &Options{OnMessage: func(*Conn, Type, []byte) {
		for began := time.Now(); time.Since(began) < slice/2; {
		}
		got++
	}})
	l.in = bytes.Repeat(fromClient(wsframe.Binary, false, "x"), 3*batch)
	for range 2 {
		got = 0
		if next := s.Data(false); next != link.Requeue || got > clockEvery {
			t.Errorf("%d messages in a turn, %d at most; %d", got, clockEvery, next)
		}
	}
}

// deafLink is a stuckLink that keeps what Follow was given.
type deafLink struct {
	stuckLink
	follow []func()
}

func (l *deafLink) Follow(f func()) { l.follow = append(l.follow, f) }

// ending is a context that ends when it has been asked once.
type ending struct {
	context.Context
	asked bool
}

func (e *ending) Err() error {
	if !e.asked {
		e.asked = true
		return nil
	}
	return context.Canceled
}

// TestWriteGivesUp: a Write whose context has ended sends nothing, and those whose contexts end
// leave nothing behind.
func TestWriteGivesUp(t *testing.T) {
	t.Parallel()
	s, _ := stuck(t, &Options{Slow: SlowDrop})
	c, l := s.conn(), new(deafLink)
	c.link = l
	p := make([]byte, 1000)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Write(done, TypeText, p); err != context.Canceled || l.held != 0 {
		t.Errorf("an ended context: %v, %d bytes were sent", err, l.held)
	}
	for turn := range 2 {
		for c.Send(TypeText, p) == nil {
		}
		for range 3 {
			if err := c.Write(&ending{Context: done}, TypeText, p); err != context.Canceled {
				t.Errorf("a context that ends: %v", err)
			}
		}
		if n := len(l.follow); n != turn+1 {
			t.Fatalf("turn %d: Follow was called %d times", turn, n)
		}
		l.held = 0
		l.follow[turn]()
		if err := c.Write(t.Context(), TypeText, p); err != nil {
			t.Error(err)
		}
	}
}
