package h2_test

import (
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testhook"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// oneLoop starts s with a single event loop, which all connections share, and whose poller
// open makes.
func oneLoop(t *testing.T, s *chert.Server, open func() (poll.Poller, error)) *running {
	t.Helper()
	s.Engine = chert.EngineLoops
	s.Protocols = new(http.Protocols)
	s.Protocols.SetUnencryptedHTTP2(true)
	l := servertest.ListenTCP(t)
	testhook.Of(s).Kernel(&testhook.Kernel{
		Loops:  1,
		Poller: open,
		Sockets: func(int) (fds []int, err error) {
			fd := -1
			must(l.(syscall.Conn).SyscallConn()).Control(func(have uintptr) { fd, err = syscall.Dup(int(have)) })
			return []int{fd}, errors.Join(err, l.Close())
		},
	})
	r := &running{t: t, kind: "loops", addr: l.Addr().String(), server: s}
	ended := make(chan error, 1)
	own := must(s.Listen("tcp", "127.0.0.1:0"))
	go func() { ended <- s.Serve(own) }()
	t.Cleanup(func() {
		s.Close()
		if err := servertest.Await(t, ended, "Serve"); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return r
}

// arrived waits until the server's kernel has all that c has sent.
func (c *raw) arrived() {
	c.t.Helper()
	servertest.Eventually(c.t, "what was sent has arrived", func() (all bool) {
		must(c.Conn.(*net.TCPConn).SyscallConn()).Control(func(fd uintptr) { all = sys.Queued(int(fd)) == 0 })
		return all
	})
}

// A client is answered between the header blocks of another that sends nothing but such as
// begin no handler, although all of them were there before its request.
func TestFloodOfHeadersGivesWay(t *testing.T) {
	t.Parallel()
	const flood = 400 // less than section.ResetBudget
	for _, tt := range []struct {
		name   string
		open   bool // a stream that keeps the only place
		fields []string
	}{
		{"malformed", false, []string{":method: GET"}},
		{"refused", true, get},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			began, goOn := make(chan bool), make(chan bool)
			var refused, before atomic.Int64 // before the other client's answer
			s := oneLoop(t, &chert.Server{
				HTTP2: &http.HTTP2Config{
					MaxConcurrentStreams: 1,
					CountError: func(string) { // on the loop, not under a lease
						if refused.Add(1) == 1 {
							began <- true
							<-goOn
						}
						// Many of them are more than a turn.
						for since := sys.Nanotime(); sys.Nanotime()-since < 25_000; {
						}
					},
				},
				Handler: direct.HandlerFunc(func(x *direct.Exchange) {
					before.Store(refused.Load())
					x.WriteString("hello")
				}),
			}, func() (poll.Poller, error) { return poll.New(nil) })
			other, c := s.raw(), s.raw()
			if a := other.get(1, "/"); a.body != "hello" {
				t.Fatalf("before: %+v", a)
			}
			id := uint32(1)
			if tt.open {
				c.headers(id, false, post...)
				id += 2
			}
			c.headers(id, true, tt.fields...)
			c.send()
			servertest.Await(t, began, "the first of them")
			for range flood - 1 {
				id += 2
				c.headers(id, true, tt.fields...)
			}
			c.send()
			c.arrived()
			other.headers(3, true, get...)
			other.send()
			other.arrived()
			close(goOn)
			if a := other.read(3); a.body != "hello" {
				t.Fatalf("the other client: %+v", a)
			}
			if n := before.Load(); n < 1 || n >= flood/2 {
				t.Errorf("the other client was answered after %d of %d", n, flood)
			}
			for left := flood; left > 0; {
				switch f := c.next().(type) {
				case nil:
					t.Fatal("closed")
				case *http2.RSTStreamFrame:
					left--
				case *http2.GoAwayFrame:
					t.Fatal(f)
				}
			}
		})
	}
}

// swallowing is a poller over which large writes reach no client: one that takes all at once.
type swallowing struct {
	poll.Poller
	wrote func()
}

func (s swallowing) Write2(fd int, a, b []byte) (int, sys.Errno) {
	if n := len(a) + len(b); n >= 16<<10 {
		s.wrote()
		return n, 0
	}
	return s.Poller.Write2(fd, a, b)
}

// A client is answered between the pieces of large answers to another, which takes them as
// fast as they can be sent.
func TestLargeAnswersGiveWay(t *testing.T) {
	t.Parallel()
	const requests, size = 20, 1 << 20
	began, goOn, done := make(chan bool), make(chan bool), make(chan bool)
	var sent, before atomic.Int64
	write := func() { // on the loop
		switch sent.Add(1) {
		case 1:
			began <- true
			<-goOn
		case requests * size / (33 << 10): // all but what is less than a piece each
			close(done)
		}
		for since := sys.Nanotime(); sys.Nanotime()-since < 25_000; {
		}
	}
	large := make([]byte, size)
	s := oneLoop(t, &chert.Server{Handler: direct.HandlerFunc(func(x *direct.Exchange) {
		if string(x.Path()) == "/large" {
			x.Write(large)
			return
		}
		before.Store(sent.Load())
		x.WriteString("hello")
	})}, func() (poll.Poller, error) {
		p, err := poll.New(nil)
		return swallowing{p, write}, err
	})
	other, c := s.raw(), s.raw(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
	if a := other.get(1, "/"); a.body != "hello" {
		t.Fatalf("before: %+v", a)
	}
	c.fr.WriteWindowUpdate(0, 1<<30)
	for i := range uint32(requests) {
		c.headers(2*i+1, true, path(get, "/large")...)
	}
	c.send()
	servertest.Await(t, began, "the first answer")
	other.headers(3, true, get...)
	other.send()
	other.arrived()
	close(goOn)
	if a := other.read(3); a.body != "hello" {
		t.Fatalf("the other client: %+v", a)
	}
	if n, most := before.Load(), int64(requests*size/(64<<10)); n >= most/4 {
		t.Errorf("the other client was answered after %d writes of at least %d", n, most)
	}
	servertest.Await(t, done, "the rest")
}

// A client is answered between the requests of another, whose handlers are only just quick.
func TestRequestsGiveWay(t *testing.T) {
	t.Parallel()
	const requests = 60
	began, goOn := make(chan bool), make(chan bool)
	var ran, before atomic.Int64
	s := oneLoop(t, &chert.Server{
		HTTP2: &http.HTTP2Config{CountError: func(string) { // on the loop, not under a lease
			began <- true
			<-goOn
		}},
		Handler: direct.HandlerFunc(func(x *direct.Exchange) {
			if string(x.Path()) == "/" {
				before.Store(ran.Load())
			} else {
				for since := sys.Nanotime(); sys.Nanotime()-since < 50_000; {
				}
				ran.Add(1)
			}
			x.WriteString("hello")
		}),
	}, func() (poll.Poller, error) { return poll.New(nil) })
	other, c := s.raw(), s.raw()
	if a := other.get(1, "/"); a.body != "hello" {
		t.Fatalf("before: %+v", a)
	}
	c.headers(1, true, ":method: GET") // malformed
	c.send()
	servertest.Await(t, began, "the first of them")
	for i := range uint32(requests) {
		c.headers(2*i+3, true, path(get, "/quick")...)
	}
	c.send()
	c.arrived()
	other.headers(3, true, get...)
	other.send()
	other.arrived()
	close(goOn)
	if a := other.read(3); a.body != "hello" {
		t.Fatalf("the other client: %+v", a)
	}
	if n := before.Load(); n > 10 {
		t.Errorf("the other client was answered after %d of %d", n, requests)
	}
	for left := requests; left > 0; {
		switch f := c.next().(type) {
		case nil:
			t.Fatal("closed")
		case *http2.DataFrame:
			if string(f.Data()) != "hello" || !f.StreamEnded() {
				t.Fatal(f)
			}
			left--
		}
	}
}
