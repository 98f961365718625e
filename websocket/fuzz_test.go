package websocket

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/chert-http/chert/internal/link"
	"github.com/chert-http/chert/internal/testing/gorillatest"
	"github.com/chert-http/chert/internal/wsframe"
	gorilla "github.com/gorilla/websocket"
)

// fakeLink is a takeover.Link that receives what a test passes to it, on a loop or, as
// random says, on a goroutine.
type fakeLink struct {
	s      *session
	random *rand.Rand
	in     []byte
	sent   []byte
	off    bool
	posted []func() link.Next
}

func (l *fakeLink) Buffered() []byte        { return l.in }
func (l *fakeLink) Discard(n int)           { l.in = l.in[n:] }
func (l *fakeLink) Follow(f func())         { f() }
func (l *fakeLink) OnLoop() bool            { return !l.off }
func (l *fakeLink) Quick() bool             { return l.random.IntN(2) == 0 }
func (l *fakeLink) Run() bool               { l.s.Run(); return true }
func (l *fakeLink) Post(f func() link.Next) { l.posted = append(l.posted, f) }
func (l *fakeLink) SetDeadline(int64)       {}
func (l *fakeLink) Now() int64              { return 1 }
func (l *fakeLink) LocalAddr() net.Addr     { return nil }
func (l *fakeLink) RemoteAddr() net.Addr    { return nil }

func (l *fakeLink) Offer(a, b []byte, limit int) (bool, error) {
	l.sent = append(append(l.sent, a...), b...)
	return false, nil
}

// move moves the bytes, as a loop does that keeps its buffer, for Data elsewhere.
func (l *fakeLink) move() {
	l.off = true
	old := l.in
	l.in = bytes.Clone(old)
	clear(old)
}

// feed passes b to s in random pieces, and reports whether the session went on to its end.
func (l *fakeLink) feed(s *session, b []byte) bool {
	for len(b) > 0 {
		n := 1 + l.random.IntN(len(b))
		l.in = append(bytes.Clone(l.in), b[:n]...)
		b = b[n:]
		next := link.Requeue
		for next == link.Requeue || next == link.Elsewhere {
			if next == link.Elsewhere {
				l.move()
			}
			next = s.Data(false)
			l.off = false
		}
		if next != link.More {
			return false
		}
	}
	return true
}

// oracle returns the messages that gorilla/websocket finds in b.
func oracle(t *testing.T, b []byte) (messages []string) {
	c := gorillatest.Received(t, b)
	for {
		op, p, err := c.ReadMessage()
		if err != nil || op == gorilla.TextMessage && !utf8.Valid(p) {
			return messages
		}
		messages = append(messages, fmt.Sprintf("%d %q", op, p))
	}
}

// FuzzMessages compares the messages of a session with those that gorilla/websocket
// finds in the same bytes, however they arrive and wherever the code runs, and its
// answers with the messages.
func FuzzMessages(f *testing.F) {
	frame := func(op wsframe.Opcode, fin bool, p string) []byte {
		h := wsframe.Header{Fin: fin, Op: op, Masked: true, Key: 7, Length: int64(len(p))}
		b := append(h.Append(nil), p...)
		wsframe.Mask(b[len(b)-len(p):], 7)
		return b
	}
	f.Add(slices.Concat(frame(1, true, "Hello"), frame(2, false, "a"), frame(9, true, "p"), frame(0, false, ""), frame(0, true, "b"), frame(1, true, "€")), uint64(1))
	f.Add(slices.Concat(frame(1, true, "a"), frame(8, true, "\x03\xe8"), frame(1, true, "b")), uint64(2))
	f.Add(frame(1, true, "\xff"), uint64(3))
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		var got []string
		h, err := New(&Options{OnMessage: func(c *Conn, typ Type, p []byte) {
			got = append(got, fmt.Sprintf("%d %q", typ.opcode(), p))
			c.Send(typ, p)
		}, MaxMessage: -1, MaxFragments: -1})
		if err != nil {
			t.Fatal(err)
		}
		l := &fakeLink{random: rand.New(rand.NewPCG(seed, 0))}
		c := &Conn{h: h, link: l}
		l.s = (*session)(c)
		alive := l.feed((*session)(c), bytes.Clone(b))
		(*session)(c).Closed(false)
		want := oracle(t, b)
		// What gorilla does not check ends the session earlier.
		if len(got) > len(want) || alive && len(got) < len(want) || !slices.Equal(got, want[:len(got)]) {
			t.Fatalf("%q: %q, want %q", b, got, want)
		}
		// The answers are the same messages, in order, among Pongs and a Close frame.
		var sent []string
		reader := wsframe.Reader{Client: true}
		for rest := l.sent; len(rest) > 0; {
			p, n, err := reader.Next(rest, new(wsframe.Limits))
			if err != nil || n == 0 || !p.Last {
				t.Fatalf("sent %q: %v", rest, err)
			}
			if rest = rest[n:]; !p.Op.Control() {
				sent = append(sent, fmt.Sprintf("%d %q", p.Op, p.Data))
			}
		}
		if !slices.Equal(sent, got) {
			t.Fatalf("sent %q, want %q", sent, got)
		}
	})
}
