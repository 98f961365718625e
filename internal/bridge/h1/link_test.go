package h1

import (
	"context"
	"net"
	"net/http"
	"os"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/outbox"
	"github.com/chert-http/chert/internal/peer"
	"github.com/chert-http/chert/internal/place"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
)

const wrkGET = "GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"

const browserGET = "GET /articles/2026/stone?page=2 HTTP/1.1\r\n" +
	"Host: www.example.com\r\n" +
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n" +
	"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n" +
	"Accept-Language: en-GB,en;q=0.5\r\n" +
	"Accept-Encoding: gzip, deflate, br, zstd\r\n" +
	"Referer: https://www.example.com/articles\r\n" +
	"Connection: keep-alive\r\n" +
	"Cookie: session=0123456789abcdef; theme=dark\r\n" +
	"Upgrade-Insecure-Requests: 1\r\n" +
	"Sec-Fetch-Dest: document\r\n" +
	"Sec-Fetch-Mode: navigate\r\n" +
	"Sec-Fetch-Site: same-origin\r\n" +
	"Priority: u=0, i\r\n\r\n"

// fakeLink is a conn.Link on a loop that is never lost. Its peer takes everything
// and sends what is in.
type fakeLink struct {
	in    []byte
	now   int64
	sent  int
	most  int64 // of an answer in one go, if not 0: the rest waits for resume
	room  int64 // what is left of that
	begun bool
	out   outbox.Box
	owner conn.Holder // of the last answer
	off   bool        // it is not on a loop after all
	tally tally.Shard
}

func (l *fakeLink) Buffered() []byte { return l.in }
func (l *fakeLink) Discard(n int)    { l.in = l.in[n:] }

func (l *fakeLink) Send(w *conn.Write) error {
	if l.most == 0 {
		l.sent += len(w.A) + len(w.B) + int(w.Len)
		outbox.Release(w.Holder)
		return nil
	}
	if !l.begun {
		l.begun = true
		l.out.Init(l)
	}
	l.room = l.most
	l.owner = w.Holder
	s := outbox.Of(w)
	if err := s.Push(l, false, false); err != nil {
		_, err = l.out.Send(&s, w.Deadline, false, err, false)
		return err
	}
	outbox.Release(s.Free())
	return nil
}

// Push, PushFile and Wake implement outbox.Sink.
func (l *fakeLink) Push(p, q []byte, _ bool) (int, error) {
	n, err := l.PushFile(nil, 0, int64(len(p)+len(q)))
	return int(n), err
}

func (l *fakeLink) PushFile(_ *os.File, _, n int64) (int64, error) {
	if l.room == 0 {
		return 0, outbox.ErrWouldBlock
	}
	n = min(n, l.room)
	l.room -= n
	l.sent += int(n)
	return n, nil
}

func (l *fakeLink) Wake() {}

// resume sends on, as a loop does when the peer takes more.
func (l *fakeLink) resume() {
	if _, h := l.out.FileNext(); h != nil {
		if err := h.Check(); err != nil {
			panic(err)
		}
	}
	l.room = l.most
	if err := l.out.Pull(false); err != nil {
		panic(err)
	}
}

func (l *fakeLink) Out() *outbox.Box { return &l.out }
func (l *fakeLink) Share()           {}
func (l *fakeLink) Lent() conn.Lent  { return noLent{} }
func (l *fakeLink) Do(u conn.UserCode) (ran, waited bool) {
	exec.Call(u.Run, u.Ended)
	return true, false
}
func (l *fakeLink) OnLoop() bool                  { return !l.off }
func (*fakeLink) Start(conn.Run, *conn.Here) bool { panic("not used") }
func (l *fakeLink) Post(func() conn.Next)         {}
func (l *fakeLink) SetDeadline(int64)             {}
func (l *fakeLink) Switch(conn.Session)           {}
func (l *fakeLink) Tally() *tally.Shard           { return &l.tally }
func (l *fakeLink) Now() int64                    { return l.now }
func (l *fakeLink) Peer() peer.Peer               { return thePeer }
func (l *fakeLink) NetConn() net.Conn             { return noConn }

// nowhere is a net.Conn without addresses.
type nowhere struct{ net.Conn }

var noConn net.Conn = nowhere{}

func (nowhere) LocalAddr() net.Addr { return nil }

// noLent is lent to user code that uses none of it.
type noLent struct{ conn.Lent }

func (noLent) Yield() {}

var _ conn.Link = (*fakeLink)(nil)

// testConfig is that of a server with handler h.
func testConfig(h http.Handler) *Config {
	places := place.New()
	return &Config{
		Config: bridge.Config{
			Handler:     &h,
			Places:      places,
			Routes:      places.NewRoutes(),
			BaseContext: context.Background(),
			KeepAlives:  func() bool { return true },
			Stopped:     func() bool { return false },
			Logf:        func(string, ...any) {},
		},
		Slice: DefaultSlice,
	}
}

// exchangeOf makes a function that has h answer the given head once, as a handler
// on a loop.
func exchangeOf(h http.Handler, head string, opts ...func(*Config)) (run func(), l *fakeLink) {
	cfg := testConfig(h)
	for _, o := range opts {
		o(cfg)
	}
	l = &fakeLink{now: sys.Nanotime()}
	s := cfg.New(l)
	s.facts.Store(onLoops)
	b := []byte(head)
	return func() {
		l.in = b
		next := s.Data(false)
		if next == conn.Elsewhere {
			next = s.Data(false)
		}
		for l.out.Blocked() {
			if next != conn.More && next != conn.Requeue {
				panic("the connection does not wait for its answer")
			}
			if l.resume(); !l.out.Blocked() {
				next = s.Data(false)
			}
		}
		if next != conn.More || len(l.in) > 0 {
			panic("the connection was not kept, or not all was served")
		}
	}, l
}

var thePeer = peer.Parse("127.0.0.1:1")
