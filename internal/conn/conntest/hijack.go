package conntest

import (
	"io"
	"net"
	"strings"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// testHijack: a hijacked connection has the bytes that were not consumed,
// follows everything that was sent, and no longer belongs to the link.
func testHijack(x *suite) {
	for _, how := range []string{"user", "pool", "user, queued", "pool, queued"} {
		for _, parts := range [][]string{{"a\nhijack\nrest"}, {"hijack\n", "rest"}, {"hijack\nre", "st"}} {
			x.hijack(how, parts)
		}
	}
}

func (x *suite) hijack(how string, parts []string) {
	x.Helper()
	queued := strings.HasSuffix(how, "queued")
	hijacked := make(chan net.Conn, 1)
	s := &script{only: "hijack", line: func(s *script, line string) conn.Next {
		return s.either(strings.HasPrefix(how, "pool"), func() conn.Next {
			s.Lent().SetReadDeadline(time.Now().Add(time.Hour))
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
			for b := make([]byte, 1); len(rest) < len("rest"); rest = append(rest, b...) {
				if _, err := io.ReadFull(nc, b); err != nil {
					x.Errorf("the rest after %q: %v", rest, err)
					break
				}
			}
			if string(rest) != "rest" {
				x.Errorf("the rest is %q", rest)
			}
			hijacked <- nc
			return conn.Detached
		})
	}}
	c := x.open(Options{Small: queued}, s)
	for _, p := range parts {
		c.Send(p)
	}
	if strings.HasPrefix(parts[0], "a") {
		c.Want("a\n")
	}
	if queued {
		same(x.T, c.slowly(x.T, large), pattern())
	}
	h := servertest.Await(x.T, hijacked, "the hijack")
	defer h.Close()
	if !servertest.Await(x.T, s.closed, "Closed") {
		x.Error("closed, and not hijacked")
	}
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
func testHijackRuns(x *suite) {
	for _, pooled := range []bool{false, true} {
		const n = 4
		queued, ended := make(chan bool, n), make(chan bool, n)
		s := &script{onWritable: ignore, line: func(s *script, line string) conn.Next {
			if line == "start" {
				s.Share()
				for range n {
					s.start(func() {
						for i := 0; ; i++ {
							if _, err := s.queue([]byte("run\n")); err != nil && err != conn.ErrFull {
								break
							}
							if i == 10 {
								queued <- true
							}
						}
						ended <- true
					}, nil)
				}
				return conn.More
			}
			return s.either(pooled, func() conn.Next {
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
		}}
		c := x.open(Options{}, s)
		c.Send("start\n")
		got := make(chan string, 1)
		go func() {
			b, _ := io.ReadAll(c.R)
			got <- string(b)
		}()
		for range n {
			servertest.Await(x.T, queued, "the runs")
		}
		c.Send("hijack\n")
		all := servertest.Await(x.T, got, "the end")
		runs, rest, _ := strings.Cut(all, "hijacker\n")
		if strings.Trim(runs, "run\n") != "" || rest != strings.Repeat("hijacker\n", 99)+"end\n" {
			x.Errorf("the hijacker's bytes are not its own: ..%.200q", rest)
		}
		if !servertest.Await(x.T, s.closed, "Closed") {
			x.Error("closed, and not hijacked")
		}
	}
}
