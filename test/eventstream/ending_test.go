package eventstream

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/middleware"
)

// lines is the output of an access log.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// early is a watcher that is registered before the handler, beside the log's, which comes after it.
type early struct {
	mu   sync.Mutex
	all  []wire.Delivery
	kept int
}

func (e *early) Keep() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kept++
}

func (e *early) Sent(d wire.Delivery) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, d)
}

func (e *early) get() []wire.Delivery {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]wire.Delivery(nil), e.all...)
}

// watched is h below an access log and an earlier watcher.
func watched(t *testing.T, h http.Handler) (http.Handler, *lines, *early) {
	out, first := new(lines), new(early)
	log := middleware.NewAccessLog(&middleware.AccessLogOptions{Output: out, Format: middleware.LogText, BufferSize: -1})
	t.Cleanup(func() { log.Close() })
	logged := log.Wrap(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wire.Watch(w, first)
		logged.ServeHTTP(w, r)
	}), out, first
}

// once checks that there is one line, with what is wanted, and that the earlier watcher has learned the same.
func once(t *testing.T, out *lines, first *early, alone bool, status int, body int64, complete bool) {
	t.Helper()
	servertest.Eventually(t, "the log has a line", func() bool { return strings.Count(out.String(), "\n") > 0 })
	line := out.String()
	want := fmt.Sprintf(" status=%d bytes=%d ", status, body)
	if strings.Count(line, "\n") != 1 || !strings.Contains(line, want) || strings.Contains(line, "aborted=true") == complete {
		t.Errorf("got %q, want%s, complete: %v", line, want, complete)
	}
	if alone {
		return // net/http's server has no watchers
	}
	servertest.Eventually(t, "the earlier watcher is notified", func() bool { return len(first.get()) > 0 })
	if got := first.get(); len(got) != 1 || got[0] != (wire.Delivery{Status: status, Body: body, Complete: complete}) || first.kept != 1 {
		t.Errorf("got %+v, kept %d times", got, first.kept)
	}
}

// The watchers of a stream's response are notified when it ends, with the bytes of the body that were sent: without
// the framing of chunks, compressed or not.
func TestEndingOfStream(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		for _, fields := range [][]string{nil, {"Accept-Encoding: gzip"}} {
			streams := make(chan *eventstream.Stream, 1)
			feed := topic(t, nil)
			h, out, first := watched(t, handler(t, &eventstream.Options{
				Compression: true, OnOpen: func(s *eventstream.Stream, _ *http.Request) { feed.Join(s); streams <- s },
			}))
			srv := fresh(h)
			ts := engines.Start(t, srv)
			e := open(ts, fields...)
			s := servertest.Await(t, streams, "the stream")
			publish(t, feed, "a", strings.Repeat("b", 10000), "c")
			s.Send(eventstream.Event{Data: "own"})
			if out.String() != "" || len(first.get()) > 0 {
				t.Errorf("before the end: %q, %v", out, first.get())
			}
			s.Close()
			body, err := io.ReadAll(e.r)
			if err != nil || len(body) < 100 {
				t.Fatal(len(body), err)
			}
			once(t, out, first, srv.Engine == engines.NetHTTP, 200, int64(len(body)), true)
		}
	})
}

// The same over HTTP/2, and over TLS.
func TestEndingOfStreamProtocols(t *testing.T) {
	eachProtocol(t, func(t *testing.T, start func(http.Handler) *site) {
		streams := make(chan *eventstream.Stream, 1)
		h, out, first := watched(t, handler(t, &eventstream.Options{
			MaxUnsent: 4 << 20, OnOpen: func(s *eventstream.Stream, _ *http.Request) { streams <- s },
		}))
		x := start(h)
		e, _ := x.open("")
		s := servertest.Await(t, streams, "the stream")
		for range 10 { // more than a window
			s.Send(eventstream.Event{Data: strings.Repeat("x", 100<<10)})
		}
		s.Close()
		body, err := io.ReadAll(e.r)
		if err != nil || len(body) < 1000<<10 {
			t.Fatal(len(body), err)
		}
		once(t, out, first, strings.HasPrefix(t.Name(), "TestEndingOfStreamProtocols/nethttp"), 200, int64(len(body)), true)
	})
}

// A client that leaves ends the response before it is whole.
func TestEndingByClient(t *testing.T) {
	eachProtocol(t, func(t *testing.T, start func(http.Handler) *site) {
		streams := make(chan *eventstream.Stream, 1)
		h, out, first := watched(t, handler(t, &eventstream.Options{
			OnOpen: func(s *eventstream.Stream, _ *http.Request) { streams <- s },
		}))
		x := start(h)
		e, leave := x.open("")
		read := &counter{Reader: e.head.Body}
		e.r = bufio.NewReader(read)
		s := servertest.Await(t, streams, "the stream")
		s.Send(eventstream.Event{Data: "1"})
		e.wants("1")
		leave()
		once(t, out, first, strings.HasPrefix(t.Name(), "TestEndingByClient/nethttp"), 200, read.n, false)
	})
}

// The client resets a stream of HTTP/2 of which some waits for it, and then ends the connection, while OnOpen has not
// returned. What waits is not in the body, and is taken from it only once.
func TestEndingOfResetInHandler(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		opened, leave, closed := make(chan *eventstream.Stream, 1), make(chan bool), make(chan bool, 1)
		h, out, first := watched(t, handler(t, &eventstream.Options{OnOpen: func(s *eventstream.Stream, _ *http.Request) {
			opened <- s
			<-leave
		}}))
		srv := fresh(h)
		if srv.Engine == engines.NetHTTP {
			t.Skip("its responses do not outlive their handlers")
		}
		srv.Protocols = new(http.Protocols)
		srv.Protocols.SetUnencryptedHTTP2(true)
		srv.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				closed <- true
			}
		}
		c := engines.Start(t, srv).Dial()
		c.Send(http2.ClientPreface)
		fr := http2.NewFramer(c, c.R)
		const window = 1000
		fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window})
		var block bytes.Buffer
		e := hpack.NewEncoder(&block)
		for _, f := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "h"}, {":path", "/"}} {
			e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
		}
		fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true})
		servertest.Await(t, opened, "the stream").Send(eventstream.Event{Data: strings.Repeat("x", window+window/2)})
		for n := 0; n < window; {
			f, err := fr.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			if d, ok := f.(*http2.DataFrame); ok {
				n += len(d.Data())
			}
		}
		fr.WriteRSTStream(1, http2.ErrCodeCancel)
		c.Close()
		servertest.Await(t, closed, "the end of the connection")
		close(leave)
		once(t, out, first, false, 200, window, false)
	})
}

// late is a watcher that registers another one when the handler has returned, as a goroutine of the program's may.
type late struct {
	early
	w     http.ResponseWriter
	other early
	took  chan bool
}

func (l *late) Keep() {
	l.early.Keep()
	l.took <- wire.Watch(l.w, &l.other)
}

// A watcher that is registered while the response is handed over is either refused or notified.
func TestEndingLateWatcher(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		opened, l := make(chan *eventstream.Stream, 1), &late{took: make(chan bool, 1)}
		h := handler(t, &eventstream.Options{OnOpen: func(s *eventstream.Stream, _ *http.Request) { opened <- s }})
		srv := fresh(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			l.w = w
			wire.Watch(w, l)
			h.ServeHTTP(w, r)
		}))
		if srv.Engine == engines.NetHTTP {
			t.Skip("it has no watchers")
		}
		e := open(engines.Start(t, srv))
		took := servertest.Await(t, l.took, "the second watcher")
		servertest.Await(t, opened, "the stream").Close()
		io.ReadAll(e.r)
		servertest.Eventually(t, "the first watcher is notified", func() bool { return len(l.get()) > 0 })
		if n := len(l.other.get()); took != (n > 0) {
			t.Errorf("taken: %v, notified %d times", took, n)
		}
	})
}

// counter counts what is read.
type counter struct {
	io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// A held answer's watchers are notified when it has been sent.
func TestEndingOfPoll(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		waiting := make(chan *eventstream.Poll, 1)
		h, out, first := watched(t, polls(t, &eventstream.PollOptions{OnOpen: func(p *eventstream.Poll, _ *http.Request) { waiting <- p }}))
		srv := fresh(h)
		ts := engines.Start(t, srv)
		c := ts.Dial()
		c.Send(servertest.RawHead("GET / HTTP/1.1", "Host: h"))
		p := servertest.Await(t, waiting, "the poll")
		if out.String() != "" || len(first.get()) > 0 {
			t.Errorf("before the answer: %q, %v", out, first.get())
		}
		p.Answer([]byte("answer"))
		if res, body := c.Response("GET"); body != "answer" {
			t.Fatal(res, body)
		}
		once(t, out, first, srv.Engine == engines.NetHTTP, 200, 6, true)
		c.Send(servertest.RawHead("GET / HTTP/1.1", "Host: h")) // the connection can be used again
		servertest.Await(t, waiting, "the next poll").Answer(nil)
		c.Response("GET")
	})
}

// What a topic has for a stream that has ended, but for its client's end, is not sent.
func TestJoinAfterEnd(t *testing.T) {
	each(t, func(t *testing.T, fresh func(h http.Handler) *chert.Server) {
		news := topic(t, nil)
		publish(t, news, "old")
		ts := engines.Start(t, fresh(handler(t, &eventstream.Options{
			OnOpen: func(s *eventstream.Stream, _ *http.Request) {
				s.Close()
				news.Join(s)
			},
		})))
		c := ts.Dial()
		c.Send(servertest.RawHead("GET / HTTP/1.1", "Host: h", "Connection: close"))
		c.Head()
		if _, rest, ok := strings.Cut(c.Rest(), "\r\n0\r\n\r\n"); !ok || rest != "" {
			t.Errorf("after the last chunk: %q", rest)
		}
	})
}
