package conntest

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// large is how much there is of pattern: more than any queue and sockets with small buffers take.
const large = 4 << 20

// pattern is what tests send, one part after another: no two places of it look alike for long.
func pattern() []byte { return servertest.Pattern(large) }

// patternFile is one with pattern in it, until the test's end.
func patternFile(t testing.TB) *os.File { return servertest.File(t, pattern()) }

// same fails the test where got is not want.
func same(t testing.TB, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	t.Errorf("%d bytes, want %d; at byte %d: got %.40q, want %.40q", len(got), len(want), i, got[i:], want[i:])
}

func testLines(x *suite) {
	s := new(script)
	s.onEOF = func(s *script) conn.Next {
		if len(s.Buffered()) > 0 {
			s.Send(&conn.Write{A: []byte("cut\n")})
			return conn.Linger
		}
		return conn.Close
	}
	c := x.open(Options{}, s)
	nc := s.NetConn()
	identity := func() string { return fmt.Sprint(s.Peer(), nc.LocalAddr(), nc.RemoteAddr(), nc == s.NetConn()) }
	first := identity()
	c.Send("a\n")
	c.Want("a\n")
	c.Send("b\nc\nd")
	c.Want("b\nc\n")
	for _, b := range "\nbytes\n" {
		c.Send(string(b))
	}
	c.Want("d\nbytes\n")
	if c.canHalfClose() {
		c.Send("not whole")
		c.CloseWrite()
		c.Want("cut\n")
		c.Ended()
	}
	c.closes()
	if last := identity(); last != first || !strings.HasSuffix(last, "true") {
		x.Errorf("the link was %s, and is %s in the end", first, last)
	}
}

// testEOF: Data is called with the peer's end until it has requested another.
func testEOF(x *suite) {
	held := make(chan bool, 1)
	all := []conn.Next{conn.Requeue, conn.Wait, conn.Elsewhere, conn.Requeue}
	s := &script{onEOF: func(s *script) conn.Next {
		if len(all) == 0 {
			return conn.Close
		}
		next := all[0]
		if all = all[1:]; next == conn.Wait {
			s.waits = true
			held <- true
		}
		return next
	}}
	c := x.open(Options{}, s)
	if !c.canHalfClose() {
		return
	}
	c.CloseWrite()
	servertest.Await(x.T, held, "the wait")
	s.release()
	c.ends()
}

// sender sends the pattern, one part after another, in all ways.
type sender struct {
	s       *script
	file    *os.File
	at      int
	holders []*holder
}

// part is the next n bytes, as a copy that its user may spoil.
func (d *sender) part(n int) []byte {
	p := bytes.Clone(pattern()[d.at : d.at+n])
	d.at += n
	return p
}

// hold is a holder that spoils what it held.
func (d *sender) hold(p ...[]byte) conn.Holder {
	h := &holder{t: d.s.t, use: func() { spoil(p...); d.s.Out().Blocked() }}
	d.holders = append(d.holders, h)
	return h
}

func spoil(p ...[]byte) {
	for _, p := range p {
		clear(p)
	}
}

// send sends n bytes in a way that does not wait. What is not held is spoilt at
// once.
func (d *sender) send(way, n int) error {
	a, b := d.part(n/3), d.part(n-n/3)
	w := &conn.Write{A: a, B: b, Cork: n%2 == 0}
	switch way % 4 {
	case 0:
		w.A, w.B = append(a, b...), nil
		defer func() { spoil(w.A) }()
	case 1:
		defer func() { spoil(a, b) }()
	case 2:
		w.Holder = d.hold(a, b)
	case 3:
		k := len(b) / 2
		w.B, w.File, w.Offset, w.Len = b[:k], d.file, int64(d.at-len(b)+k), int64(len(b)-k)
		w.Holder = d.hold(a, b)
	}
	return d.s.Send(w)
}

// write sends n bytes in a way that may wait.
func (d *sender) write(way, n int) error {
	switch way % 8 {
	case 0:
		at := d.at
		p := d.part(n)
		sent, ok, err := d.s.Lent().SendFile(d.file, int64(at), int64(n))
		if ok || err != nil {
			if err == nil && sent != int64(n) {
				err = fmt.Errorf("%d of %d bytes of the file were sent", sent, n)
			}
			return err
		}
		return d.s.Write(p, nil)
	case 1, 2, 3:
		return d.send(way, n)
	}
	a, b := d.part(n/3), d.part(n-n/3)
	defer spoil(a, b)
	return d.s.Write(a, b)
}

// plan is how much is sent for each line, in which way.
type plan []struct{ way, n int }

func newPlan(seed uint64, lines int) (p plan, total int) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	p = make(plan, lines)
	for i := range p {
		n := rnd.IntN(200)
		switch rnd.IntN(8) {
		case 0:
			n = rnd.IntN(60_000)
		case 1:
			n = rnd.IntN(10_000)
		case 2:
			n = rnd.IntN(3)
		}
		p[i].way, p[i].n = rnd.IntN(64), n
		total += n
	}
	for way := range 4 { // and what sockets do not hold
		i, n := rnd.IntN(lines), 300_000+rnd.IntN(300_000)
		p[i].way, p[i].n = way, p[i].n+n
		total += n
	}
	return p, total
}

// lines is a line for each of the plan.
func (p plan) lines() string {
	var b strings.Builder
	for i := range p {
		fmt.Fprintf(&b, "%d\n", i)
	}
	return b.String()
}

// order: answers that are sent in all ways without waiting come whole and in order, to a
// client that reads slowly. user: so do those of user code, which may wait, here and there.
func (x *suite) order(seeds uint64, user bool) {
	for seed := range seeds {
		p, total := newPlan(seed, 150)
		d := &sender{file: patternFile(x.T)}
		d.s = &script{line: func(s *script, line string) conn.Next {
			i, _ := strconv.Atoi(line)
			try := func(send func(way, n int) error, n int) conn.Next {
				err := send(p[i].way, n)
				if err != nil {
					x.Errorf("line %d: %v", i, err)
				}
				return unless(err)
			}
			n := p[i].n
			if !user || i%5 == 3 {
				return try(d.send, n)
			}
			if i%5 == 4 { // a part of it here, a part there
				if next := try(d.send, n/2); next != conn.More {
					return next
				}
				n -= n / 2
			}
			return s.either(i%5 == 0 || i%5 == 4 && i%2 == 0, func() conn.Next { return try(d.write, n) })
		}}
		x.plan(d, p, total, seed)
	}
}

// plan has the lines of a plan sent, and checks the answers and the holders.
func (x *suite) plan(d *sender, p plan, total int, seed uint64) {
	x.Helper()
	c := x.open(Options{Small: seed%2 == 0}, d.s)
	lines := p.lines()
	sent := make(chan error, 1)
	go func() {
		// In parts, so that Data is called with any.
		for len(lines) > 0 {
			n := min(len(lines), 1+len(lines)%37)
			if _, err := io.WriteString(c.Conn, lines[:n]); err != nil {
				sent <- err
				return
			}
			lines = lines[n:]
		}
		sent <- nil
	}()
	c.gets(pattern()[:total])
	if err := servertest.Await(x.T, sent, "the lines"); err != nil {
		x.Error(err)
	}
	c.closes()
	for _, h := range d.holders {
		h.gone()
	}
}

// testQueueOrder: what several goroutines queue beside the owner comes in the
// order in which each has queued it, and each piece whole.
func testQueueOrder(x *suite) {
	const producers, pieces, lines = 6, 60, 40
	frame := func(id, i int) []byte {
		n := (id*37 + i*i*13) % 3000
		return fmt.Appendf(nil, "%d %d %d:%s\n", id, i, n, pattern()[i:i+n])
	}
	var running atomic.Int32
	s := &script{line: func(s *script, line string) conn.Next {
		if line == "start" {
			s.Share()
			for id := range producers {
				running.Add(1)
				s.start(func() {
					for i := range pieces {
						p := frame(id, i)
						if err := s.push(p); err != nil {
							x.Errorf("Offer: %v", err)
							return
						}
						clear(p)
					}
				}, func() conn.Next { running.Add(-1); return conn.More })
			}
			return conn.More
		}
		i, _ := strconv.Atoi(line)
		p := frame(producers, i)
		k := min(i, len(p))
		switch i % 3 {
		case 0:
			defer clear(p)
			return s.give(&conn.Write{A: p[:k], B: p[k:], Cork: i%2 == 0})
		case 1:
			h := &holder{t: x.T, use: func() { clear(p) }}
			return s.give(&conn.Write{A: p[:1], B: p[1:], Holder: h})
		}
		return s.either(i%2 == 0, func() conn.Next {
			defer clear(p)
			return unless(s.Write(p[:k], p[k:]))
		})
	}}
	c := x.open(Options{Small: true}, s)
	c.Send("start\n")
	c.sendLines(lines)
	next := make([]int, producers+1)
	for range producers*pieces + lines {
		var id, i, n int
		if _, err := fmt.Fscanf(c.R, "%d %d %d:", &id, &i, &n); err != nil {
			x.Fatalf("after %v: %v", next, err)
		}
		if id > producers || i != next[id] {
			x.Fatalf("producer %d: got piece %d, want %d", id, i, next[id])
		}
		next[id]++
		c.gets(append(bytes.Clone(pattern()[i:i+n]), '\n'))
	}
	servertest.Eventually(x.T, "all runs have ended", func() bool { return running.Load() == 0 })
	c.closes()
}
