package outbound

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/reason"
	"github.com/chert-http/chert/internal/retry"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// This file tests what servers do while the loop is busy.

// lasting is a client that stays, and the Route of its request, which goes to the servers in turn.
type lasting struct {
	leaving
	servers  []*Server
	attempts chan retry.Attempt
	body     []byte        // of the response
	slow     time.Duration // how long each part of that takes
	then     func()        // nil, or called at the end
}

func newLasting(servers ...*Server) *lasting {
	done, attempts := make(chan reason.Code, 2), make(chan retry.Attempt, 2)
	return &lasting{leaving: leaving{done: done, server: servers[0]}, servers: servers, attempts: attempts}
}

func (c *lasting) Body(p []byte) error {
	c.body = append(c.body, p...)
	time.Sleep(c.slow)
	return nil
}

func (c *lasting) Done(why reason.Code) {
	if c.then != nil {
		c.then()
	}
	c.done <- why
}

func (c *lasting) Failed(a *retry.Attempt, _ int64, _ error) (next *Server, fresh bool) {
	c.attempts <- *a
	if c.servers = c.servers[1:]; len(c.servers) == 0 {
		return nil, false
	}
	return c.servers[0], false
}

// plan is for a request.
func (c *lasting) plan(terms *Terms, head string) *Plan {
	p := NewPlan()
	p.Route, p.Terms, p.Again = c, terms, true
	p.Out = buf.Get(len(head))
	p.Out.B = append(p.Out.B, head...)
	return p
}

// running returns a loop that runs up to the end of the test.
func running(t *testing.T) *loop.Loop {
	l, err := loop.New()
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- l.Run() }()
	t.Cleanup(func() {
		l.Do(l.Retire)
		if err := servertest.Await(t, ran, "the end of the loop"); err != nil {
			t.Error(err)
		}
	})
	return l
}

// serving returns a server whose connections are served by serve.
func serving(t *testing.T, listener net.Listener, secure bool, serve func(nc net.Conn)) *Server {
	t.Cleanup(func() { listener.Close() })
	remote, err := sys.NewRemote(listener.Addr().Network(), listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	var config *tls.Config
	if secure {
		cert, roots := servertest.Certificate(t)
		config = &tls.Config{RootCAs: roots, ServerName: "example.com"}
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{cert}})
	}
	go func() {
		for {
			nc, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				serve(nc)
			}()
		}
	}()
	return NewServer(remote, config, retry.NewIdleLimit(0))
}

// reset ends a connection by a reset.
func reset(nc net.Conn) {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	nc.(*net.TCPConn).SetLinger(0)
	nc.Close()
}

// TestUploadAfterReset: what comes of a body when its server can get no more of it is for the next one, and so is what
// comes later.
func TestUploadAfterReset(t *testing.T) {
	t.Parallel()
	const head = "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
	first, lose, second, bodies := make(chan bool, 1), make(chan bool), make(chan bool, 1), make(chan string, 1)
	c := newLasting(serving(t, servertest.ListenTCP(t), false, func(nc net.Conn) {
		io.ReadFull(nc, make([]byte, len(head)))
		first <- true
		<-lose
		reset(nc)
		lose <- true
	}), serving(t, servertest.ListenTCP(t), false, func(nc net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(nc))
		if err != nil {
			t.Error(err)
			return
		}
		body := make([]byte, 4)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			t.Error(err)
		}
		second <- true
		rest, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		bodies <- string(body) + string(rest)
		io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	}))
	l := running(t)
	l.Do(func() {
		p := c.plan(NewTerms(&Terms{}), head)
		p.Open, p.Chunked, p.Keep = true, true, 1000
		c.x.Begin(l, p, c)
	})
	servertest.Await(t, first, "the first request")
	l.Do(func() {
		lose <- true
		<-lose
		c.x.Upload([]byte("ab")) // fails
		c.x.Upload([]byte("cd"))
	})
	servertest.Await(t, second, "the second request")
	l.Do(func() {
		c.x.Upload([]byte("ef"))
		c.x.UploadEnd([]byte("\r\n"))
	})
	if body := servertest.Await(t, bodies, "the body"); body != "abcdef" {
		t.Errorf("%q", body)
	}
	if why := servertest.Await(t, c.done, "the response"); why != reason.None {
		t.Errorf("done: %v", why)
	}
}

// TestSendFails: of a request on a connection that was kept, and that is reset when it is taken, nothing was sent, as
// far as is known. TLS makes records of it, of which some may have been.
func TestSendFails(t *testing.T) {
	t.Parallel()
	const get, put = "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprint(secure), func(t *testing.T) {
			t.Parallel()
			lose := make(chan bool)
			s := serving(t, servertest.ListenTCP(t), secure, func(nc net.Conn) {
				io.ReadFull(nc, make([]byte, len(get)))
				io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				<-lose
				reset(nc)
				lose <- true
			})
			terms := NewTerms(&Terms{Idle: 1, IdleTime: int64(servertest.Patience)})
			l := running(t)
			first, second := newLasting(s), newLasting(s)
			l.Do(func() { first.x.Begin(l, first.plan(terms, get), first) })
			servertest.Await(t, first.done, "the first response")
			l.Do(func() {
				second.x.Prepare(l, second.plan(terms, put), second)
				c := localOf(l).take(s, terms, l.Now(), true)
				lose <- true
				<-lose
				a, idle := second.x.reuse(c, l.Now())
				second.Failed(a, idle, nil)
			})
			want := retry.Attempt{Reason: reason.Closed, Reused: true}
			if secure {
				want.Progress = retry.Sent
			}
			if got := servertest.Await(t, second.attempts, "the second request"); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

// TestUnasked: a connection is not used on which the server has sent something since the last response, though the loop
// has not seen that yet: it would be the response to the next request.
func TestUnasked(t *testing.T) {
	t.Parallel()
	const get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprint(secure), func(t *testing.T) {
			t.Parallel()
			more, n := make(chan bool), atomic.Int64{}
			s := serving(t, servertest.ListenTCP(t), secure, func(nc net.Conn) {
				io.ReadFull(nc, make([]byte, len(get)))
				if n.Add(1) == 2 {
					io.WriteString(nc, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\ngood")
					return
				}
				io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				<-more
				io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad")
				more <- true
				io.ReadFull(nc, make([]byte, len(get))) // none comes
			})
			terms := NewTerms(&Terms{Idle: 1, IdleTime: int64(servertest.Patience)})
			l := running(t)
			first, second := newLasting(s), newLasting(s)
			l.Do(func() { first.x.Begin(l, first.plan(terms, get), first) })
			servertest.Await(t, first.done, "the first response")
			l.Do(func() {
				more <- true
				<-more
				second.x.Begin(l, second.plan(terms, get), second)
			})
			servertest.Await(t, second.done, "the second response")
			if got := string(second.body); got != "good" || len(second.attempts) > 0 {
				t.Errorf("the second response is %q, %d tries failed", got, len(second.attempts))
			}
		})
	}
}

// TestPartOfRecord: nor is one used on which it has sent a part of a record, which the loop has read.
func TestPartOfRecord(t *testing.T) {
	t.Parallel()
	const get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
	more := make(chan bool)
	s := serving(t, servertest.ListenTCP(t), true, func(nc net.Conn) {
		io.ReadFull(nc, make([]byte, len(get)))
		io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		<-more
		nc.(*tls.Conn).NetConn().Write([]byte{23, 3, 3, 0, 99, 1})
		io.ReadFull(nc, make([]byte, len(get))) // none comes
	})
	terms := NewTerms(&Terms{Idle: 1, IdleTime: int64(servertest.Patience)})
	l := running(t)
	c := newLasting(s)
	l.Do(func() { c.x.Begin(l, c.plan(terms, get), c) })
	servertest.Await(t, c.done, "the response")
	more <- true
	yes := make(chan bool, 1)
	servertest.Eventually(t, "the part has come", func() bool {
		l.Do(func() { yes <- localOf(l).pools[s].idle[0].out.Unread() })
		return <-yes
	})
	l.Do(func() {
		taken := localOf(l).take(s, terms, l.Now(), true)
		if yes <- taken != nil; taken != nil {
			taken.out.Act(conn.Reset)
		}
	})
	if <-yes {
		t.Error("a request would be sent on it")
	}
}

// TestMoreUnread: a connection is not kept of which the rest may not have been read, when the last read was full and
// the turn is over. What else the server has sent would be the response to the next request. A Unix socket has all of
// it when it is read.
func TestMoreUnread(t *testing.T) {
	t.Parallel()
	const first, second = "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n", "GET /2 HTTP/1.1\r\nHost: h\r\n\r\n"
	const size = 128 << 10 // two reads

	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	asked, written := make(chan bool, 1), make(chan bool)
	s := serving(t, listener, false, func(nc net.Conn) {
		nc.(*net.UnixConn).SetWriteBuffer(2 * size)
		for in := bufio.NewReader(nc); ; {
			r, err := http.ReadRequest(in)
			switch {
			case err != nil:
				return
			case r.URL.Path == "/2":
				io.WriteString(nc, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\ngood")
				return
			}
			asked <- true
			<-written
			head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %06d\r\n\r\n", size)
			head = strings.Replace(head, fmt.Sprint(size), fmt.Sprint(size-len(head)), 1)
			more := "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad"
			io.WriteString(nc, head+strings.Repeat("x", size-len(head))+more)
			written <- true
		}
	})
	terms := NewTerms(&Terms{Idle: 1, IdleTime: int64(servertest.Patience)})
	l := running(t)
	a, b := newLasting(s), newLasting(s)
	a.slow = 5 * time.Millisecond // longer than a turn
	a.then = func() { l.Do(func() { b.x.Begin(l, b.plan(terms, second), b) }) }
	l.Do(func() { a.x.Begin(l, a.plan(terms, first), a) })
	servertest.Await(t, asked, "the first request")
	l.Do(func() {
		written <- true
		<-written
	})
	servertest.Await(t, a.done, "the first response")
	if servertest.Await(t, b.done, "the second response"); string(b.body) != "good" {
		t.Errorf("the second response is %q", b.body)
	}
}
