package conntest

import (
	"bytes"
	"io"
	"net"
	"strings"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// testHijack: a hijacked connection has the bytes that were not consumed,
// follows everything that was sent, and no longer belongs to the link, which may have watched it.
func testHijack(x *suite, pooled bool) {
	for _, queued := range []bool{false, true} {
		for _, parts := range [][]string{{"a\nhijack\nrest"}, {"hijack\n", "rest"}, {"hijack\nre", "st"}} {
			x.hijack(pooled, queued, false, parts)
			x.hijack(pooled, queued, true, parts)
		}
	}
}

func (x *suite) hijack(pooled, queued, watch bool, parts []string) {
	x.Helper()
	hijacked := make(chan net.Conn, 1)
	s := &script{only: "hijack", line: inUser(pooled, func(s *script, _ string) conn.Next {
		s.Lent().SetReadDeadline(time.Now().Add(time.Hour))
		if watch {
			s.Lent().WatchPeer()
		}
		if queued {
			h := &holder{t: x.T}
			s.Send(&conn.Write{A: pattern(), Holder: h})
			defer h.gone()
		}
		nc, rest, err := s.Lent().Hijack()
		if err != nil {
			x.Errorf("Hijack: %v", err)
			return conn.Close
		}
		more := io.LimitReader(nc, int64(len("rest")-len(rest)))
		all, err := io.ReadAll(io.MultiReader(bytes.NewReader(rest), more))
		if string(all) != "rest" || err != nil {
			x.Errorf("the rest is %q, %v", all, err)
		}
		hijacked <- nc
		return conn.Detached
	})}
	c := x.open(Options{Small: queued}, s)
	for _, p := range parts {
		c.Send(p)
	}
	if strings.HasPrefix(parts[0], "a") {
		c.Want("a\n")
	}
	if queued {
		c.gets(pattern())
	}
	h := servertest.Await(x.T, hijacked, "the hijack")
	defer h.Close()
	s.isHijacked()
	c.command(conn.Drain)
	c.command(conn.Kill)
	c.Send("ping\n")
	b := make([]byte, 5)
	if _, err := io.ReadFull(h, b); err != nil || string(b) != "ping\n" {
		x.Errorf("read %q, %v", b, err)
	}
	go io.WriteString(h, "pong\n")
	c.Want("pong\n")
	h.SetReadDeadline(time.Now().Add(-time.Second))
	_, err := h.Read(b)
	timeout(x, "the hijacker's deadline", err)
	h.SetReadDeadline(time.Time{})
	h.Close()
	c.Ended()
}

// testHijackRuns: runs that continue find a closed link, and no longer use the
// connection.
func testHijackRuns(x *suite, pooled bool) {
	const n = 4
	queued, ended := make(chan bool, n), make(chan bool, n)
	start := func(s *script) {
		for i := 0; ; i++ {
			if _, err := s.queue([]byte("run\n")); err != nil && err != conn.ErrFull {
				break
			}
			if i == 10 {
				queued <- true
			}
		}
		ended <- true
	}
	hijack := inUser(pooled, func(s *script, _ string) conn.Next {
		nc, _, err := s.Lent().Hijack()
		if err != nil {
			x.Errorf("Hijack: %v", err)
			return conn.Close
		}
		for range 100 {
			io.WriteString(nc, "hijacker\n")
		}
		for range n {
			servertest.Await(x.T, ended, "the runs")
		}
		io.WriteString(nc, "end\n")
		nc.Close()
		return conn.Detached
	})
	s := &script{line: func(s *script, line string) conn.Next {
		if line == "hijack" {
			return hijack(s, line)
		}
		return beside(start)(s, line)
	}}
	c := x.open(Options{}, s)
	c.Send(strings.Repeat("start\n", n))
	got := c.reading()
	for range n {
		servertest.Await(x.T, queued, "the runs")
	}
	c.Send("hijack\n")
	all := servertest.Await(x.T, got, "the end")
	runs, rest, _ := strings.Cut(all, "hijacker\n")
	if strings.Trim(runs, "run\n") != "" || rest != strings.Repeat("hijacker\n", 99)+"end\n" {
		x.Errorf("the hijacker's bytes are not its own: ..%.200q", rest)
	}
	s.isHijacked()
}
