package http3_test

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/eventstream"
	codec "github.com/chert-http/chert/internal/http3"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/internal/wsframe"
	"github.com/chert-http/chert/websocket"
)

// events is a server of event streams that are all of one topic.
func events(t *testing.T, o *eventstream.Options, srv *chert.Server) (*running, *eventstream.Topic) {
	t.Helper()
	topic, err := eventstream.NewTopic(nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Heartbeat, o.Retry = -1, -1
	o.OnOpen = func(s *eventstream.Stream, r *http.Request) { topic.Join(s) }
	h, err := eventstream.New(o)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/events", h)
	mux.HandleFunc("/", hello)
	srv.Handler = mux
	return serve(t, srv), topic
}

// upTo reads what the server sends up to a part of it.
func (e *exchange) upTo(part string) (all string) {
	e.c.t.Helper()
	for !strings.Contains(all, part) {
		h, p, err := e.next()
		if err != nil {
			e.c.t.Fatalf("%v after %q", err, all)
		}
		if h.Type == codec.FrameData {
			all += string(p)
		}
	}
	return all
}

func publish(t *testing.T, topic *eventstream.Topic, data string) {
	t.Helper()
	if _, err := topic.Publish(eventstream.Event{Data: data}); err != nil {
		t.Fatal(err)
	}
}

// An event stream lives as long as its client, and is no goroutine's.
func TestEventStreams(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	closed := 0
	s, topic := events(t, &eventstream.Options{OnClose: func(*eventstream.Stream) { mu.Lock(); closed++; mu.Unlock() }}, &chert.Server{WriteTimeout: time.Second})
	c := s.raw()
	var open []*exchange
	for range 50 {
		open = append(open, c.open(true, headers(path(get, "/events")...)))
	}
	servertest.Eventually(t, "all are open", func() bool { return topic.Len() == 50 })
	publish(t, topic, "one")
	publish(t, topic, strings.Repeat("two", 1000))
	for _, e := range open {
		e.upTo("two\n\n")
	}
	if n := s.Stats().Connections; n.EventStreams != 50 {
		t.Errorf("%+v", n)
	}
	// A stream has events before its handler returns.
	servertest.Eventually(t, "no handler runs", func() bool { return s.Stats().Running == 0 && len(s.RunningRequests(100)) == 0 })
	// Some leave, each in its way.
	open[0].CancelRead(quic.StreamErrorCode(codec.RequestCancelled))
	open[1].CancelRead(quic.StreamErrorCode(codec.NoError))
	servertest.Eventually(t, "two have left", func() bool { return topic.Len() == 48 })
	if a := c.get("/"); a.body != "hello" {
		t.Errorf("%+v", a)
	}
	publish(t, topic, "three")
	open[2].upTo("three\n\n")
	c.CloseWithError(0x100, "")
	servertest.Eventually(t, "all have left", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return topic.Len() == 0 && closed == 50
	})
	servertest.Eventually(t, "all are counted", func() bool { return s.Stats().Connections.EventStreams == 0 })
}

// Event streams that wait have no goroutines. It counts all of the process, so nothing runs beside it.
func TestEventStreamsWaitWithoutGoroutines(t *testing.T) {
	s, topic := events(t, &eventstream.Options{}, &chert.Server{})
	c := s.raw()
	if a := c.get("/"); a.body != "hello" { // the connection has its own
		t.Fatalf("%+v", a)
	}
	before := 0
	servertest.Eventually(t, "the goroutines of the request have ended", func() bool {
		last := before
		before = runtime.NumGoroutine()
		return before == last
	})
	const streams = 50
	for range streams {
		c.open(true, headers(path(get, "/events")...)).upTo(":")
	}
	servertest.Eventually(t, "all are open", func() bool { return topic.Len() == streams })
	servertest.Eventually(t, "they have no goroutines", func() bool { return runtime.NumGoroutine() < before+streams/10 })
}

// Places of streams, and of MaxHandlers, are free again when event streams have ended.
func TestEventStreamsEnd(t *testing.T) {
	t.Parallel()
	s, topic := events(t, &eventstream.Options{}, &chert.Server{MaxHandlers: 2, QueueLength: 10, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 10}})
	c := s.raw()
	for range 5 {
		var open []*exchange
		for range 10 {
			open = append(open, c.open(true, headers(path(get, "/events")...)))
		}
		servertest.Eventually(t, "all are open", func() bool { return topic.Len() == 10 })
		for _, e := range open {
			e.CancelRead(quic.StreamErrorCode(codec.RequestCancelled))
		}
		servertest.Eventually(t, "all have left", func() bool { return topic.Len() == 0 })
	}
	if a := c.get("/"); a.body != "hello" {
		t.Errorf("%+v", a)
	}
}

// OnClose of event streams and polls comes once, after OnOpen has returned, also if the client has reset the stream before.
func TestCloseAfterOpen(t *testing.T) {
	t.Parallel()
	begun, release, closed := make(chan bool), make(chan bool), make(chan bool, 100)
	var opening atomic.Bool
	onOpen := func() {
		opening.Store(true)
		defer opening.Store(false)
		begun <- true
		<-release
	}
	onClose := func() {
		if opening.Load() {
			t.Error("OnClose before OnOpen has returned")
		}
		closed <- true
	}
	streams, err := eventstream.New(&eventstream.Options{
		OnOpen: func(*eventstream.Stream, *http.Request) { onOpen() }, OnClose: func(*eventstream.Stream) { onClose() },
	})
	if err != nil {
		t.Fatal(err)
	}
	polls, err := eventstream.NewPoll(&eventstream.PollOptions{
		OnOpen: func(*eventstream.Poll, *http.Request) { onOpen() }, OnClose: func(*eventstream.Poll) { onClose() },
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/stream", streams)
	mux.Handle("/poll", polls)
	c := serve(t, &chert.Server{Handler: mux}).raw()
	for _, p := range []string{"/stream", "/poll"} {
		e := c.open(true, headers(path(get, p)...))
		servertest.Await(t, begun, p+": OnOpen")
		e.CancelRead(quic.StreamErrorCode(codec.RequestCancelled))
		servertest.Eventually(t, p+": the end is noticed", func() bool { return streams.Len()+polls.Len() == 0 })
		time.Sleep(20 * time.Millisecond) // OnClose, if it is on its way
		release <- true
		servertest.Await(t, closed, p+": OnClose")
	}
	if n := len(closed); n > 0 {
		t.Errorf("OnClose was called %d times more", n)
	}
}

// A client that reads too slowly loses its stream, and not more.
func TestSlowEventStream(t *testing.T) {
	t.Parallel()
	s, topic := events(t, &eventstream.Options{MaxUnsent: 32 << 10}, &chert.Server{})
	slow := s.bare(&quic.Config{InitialStreamReceiveWindow: 20_000, MaxStreamReceiveWindow: 20_000})
	quick := s.raw()
	slow.open(true, headers(path(get, "/events")...))
	e := quick.open(true, headers(path(get, "/events")...))
	servertest.Eventually(t, "both are open", func() bool { return topic.Len() == 2 })
	n := 0
	servertest.Eventually(t, "one has gone", func() bool {
		publish(t, topic, strings.Repeat("x", 1000)+"end")
		e.upTo("end\n\n")
		n++
		return topic.Len() == 1
	})
	if n < 20 {
		t.Errorf("after %d events", n)
	}
	if a := slow.get("/"); a.body != "hello" {
		t.Errorf("%+v", a)
	}
}

// Shutdown ends event streams, which say so, and WebSockets.
func TestShutdownOfLasting(t *testing.T) {
	t.Parallel()
	s, topic := events(t, &eventstream.Options{}, &chert.Server{})
	c := s.raw()
	e := c.open(true, headers(path(get, "/events")...))
	servertest.Eventually(t, "it is open", func() bool { return topic.Len() == 1 })
	ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(ctx) }()
	if a := e.read(); a.err != nil || !strings.Contains(a.body, "event: shutdown") {
		t.Errorf("%+v", a)
	}
	if err := servertest.Await(t, done, "Shutdown"); err != nil {
		t.Error(err)
	}

	sockets := tunnels(t, &websocket.Options{})
	e = sockets.raw().socket()
	go func() { done <- sockets.Shutdown(ctx) }()
	e.upTo("\x88\x02\x03\xe9") // CodeGoingAway
	e.Write(data(message(wsframe.Close, "\x03\xe9")))
	if a := e.read(); a.err != nil {
		t.Errorf("%+v", a)
	}
	e.Close()
	if err := servertest.Await(t, done, "Shutdown"); err != nil {
		t.Error(err)
	}
}

// connect is an extended CONNECT.
var connect = []string{":method: CONNECT", ":protocol: websocket", ":scheme: https", ":authority: example.com", ":path: /", "sec-websocket-version: 13"}

// message is a client's frame.
func message(op wsframe.Opcode, payload string) string {
	h := wsframe.Header{Fin: true, Op: op, Masked: true, Key: 0x01020304, Length: int64(len(payload))}
	b := h.Append(nil)
	n := len(b)
	b = append(b, payload...)
	wsframe.Mask(b[n:], h.Key)
	return string(b)
}

// echoes is what the server answers to texts.
func echoes(all ...string) string {
	var b []byte
	for _, s := range all {
		b = wsframe.AppendFrame(b, wsframe.Text, false, []byte(s))
	}
	return string(b)
}

// tunnels starts a server of WebSockets.
func tunnels(t *testing.T, o *websocket.Options) *running {
	t.Helper()
	if o.OnMessage == nil && o.Serve == nil {
		o.OnMessage = func(c *websocket.Conn, typ websocket.Type, p []byte) { c.Send(typ, p) }
	}
	h, err := websocket.New(o)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.HandleFunc("/hello", hello)
	return serve(t, &chert.Server{Handler: mux, ExtendedConnect: true, ReadTimeout: 5 * time.Second})
}

// socket opens a WebSocket and reads its head. more is sent with the request.
func (c *raw) socket(more ...[]byte) *exchange {
	c.t.Helper()
	e := c.open(false, join(append([][]byte{headers(connect...)}, more...)...))
	h, p, err := e.next()
	if err != nil || h.Type != codec.FrameHeaders || decode(c.t, p)[0] != ":status: 200" {
		c.t.Fatalf("%v %v %v", h, p, err)
	}
	return e
}

func text(s string) []byte { return data(message(wsframe.Text, s)) }

// A client that has opened a WebSocket and says nothing gets Pings.
func TestSilentWebSocket(t *testing.T) {
	t.Parallel()
	tunnels(t, &websocket.Options{PingInterval: 20 * time.Millisecond}).raw().socket().upTo("\x89\x00")
}

// WebSockets as streams (RFC 9220).
func TestWebSockets(t *testing.T) {
	t.Parallel()
	closed := make(chan websocket.Code, 100)
	s := tunnels(t, &websocket.Options{OnClose: func(_ *websocket.Conn, code websocket.Code, _ string) { closed <- code }})
	c := s.raw()
	var all []*exchange
	for range 20 {
		all = append(all, c.socket(text("first"))) // with the request
	}
	for _, e := range all {
		e.upTo(echoes("first"))
		// In parts, and with frames in between that mean nothing.
		p := message(wsframe.Text, "second")
		for i := range p {
			e.Write(join(data(p[i:i+1]), data(""), frame(0x21, []byte("x"))))
		}
		e.upTo(echoes("second"))
		long := strings.Repeat("long", 10_000)
		e.Write(text(long))
		e.upTo(echoes(long))
	}
	if n := s.Stats().Connections; n.WebSockets != 20 {
		t.Errorf("%+v", n)
	}
	if a := c.get("/hello"); a.body != "hello" {
		t.Errorf("%+v", a)
	}
	want := func(code websocket.Code) {
		t.Helper()
		if got := servertest.Await(t, closed, "OnClose"); got != code {
			t.Errorf("code %d, want %d", got, code)
		}
	}
	// Close, as it should be.
	all[0].Write(data(message(wsframe.Close, "\x03\xe8")))
	if a := all[0].read(); a.err != nil || a.body != "\x88\x02\x03\xe8" {
		t.Errorf("%+v", a)
	}
	want(1000)
	// Its half is closed; or reset (RFC 9220 section 3), or all of it.
	all[1].Close()
	want(1006)
	all[2].CancelWrite(quic.StreamErrorCode(codec.RequestCancelled))
	want(1006)
	all[3].CancelRead(quic.StreamErrorCode(codec.RequestCancelled))
	all[3].CancelWrite(quic.StreamErrorCode(codec.RequestCancelled))
	want(1006)
	// An error of the protocol.
	all[4].Write(data("\x81\x05hello")) // not masked
	all[4].upTo("\x88")
	want(1002)
	servertest.Eventually(t, "they are counted", func() bool { return s.Stats().Connections.WebSockets == 15 })
	all[5].Write(text("still"))
	all[5].upTo(echoes("still"))
	// A frame that may not be there ends the connection.
	all[5].Write(headers("a: b"))
	if got := c.ended(); got != "CLOSE H3_FRAME_UNEXPECTED" {
		t.Error(got)
	}
	for range 15 {
		want(1006)
	}
}

// Places of streams are free again when WebSockets have ended, in whatever way.
func TestWebSocketsEnd(t *testing.T) {
	t.Parallel()
	h, err := websocket.New(&websocket.Options{OnMessage: func(c *websocket.Conn, _ websocket.Type, p []byte) {
		if string(p) == "panic" {
			panic(http.ErrAbortHandler)
		}
		c.Close(websocket.CodeNormal, "")
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, &chert.Server{Handler: h, ExtendedConnect: true, MaxHandlers: 2, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 4}})
	c := s.raw()
	for range 4 {
		ends := []func(e *exchange){
			func(e *exchange) { cancel(e.Stream) },
			func(e *exchange) { e.Close() },
			func(e *exchange) { e.Write(text("panic")); e.read(); e.Close() },
			func(e *exchange) {
				e.Write(text("close"))
				e.upTo("\x88\x02\x03\xe8")
				e.Write(data(message(wsframe.Close, "\x03\xe8")))
				e.Close()
			},
		}
		for _, end := range ends {
			end(c.socket())
		}
	}
	servertest.Eventually(t, "all have ended", func() bool { return s.Stats().Connections.WebSockets == 0 })
}

// A handler that ends its goroutine when the stream has been taken over ends the WebSocket, which is told.
func TestWebSocketGoexit(t *testing.T) {
	t.Parallel()
	closed := make(chan websocket.Code, 1)
	s := tunnels(t, &websocket.Options{
		OnOpen:    func(*websocket.Conn, *http.Request) { runtime.Goexit() },
		OnMessage: func(*websocket.Conn, websocket.Type, []byte) { t.Error("a message is delivered") },
		OnClose:   func(_ *websocket.Conn, code websocket.Code, _ string) { closed <- code },
	})
	c := s.raw()
	for range 3 {
		if a := c.open(false, headers(connect...), text("first")).read(); a.ending() != "RESET H3_INTERNAL_ERROR" {
			t.Errorf("%+v", a)
		}
		if code := servertest.Await(t, closed, "OnClose"); code != 1011 {
			t.Errorf("code %d", code)
		}
	}
	servertest.Eventually(t, "they are counted", func() bool { return s.Stats().Connections.WebSockets == 0 })
	if a := c.get("/hello"); a.body != "hello" {
		t.Errorf("%+v", a)
	}
}

// The deadlines of the request are not those of its WebSocket, nor what was set to read its head.
func TestWebSocketOutlivesDeadlines(t *testing.T) {
	t.Parallel()
	h, err := websocket.New(&websocket.Options{OnMessage: func(c *websocket.Conn, typ websocket.Type, p []byte) { c.Send(typ, p) }})
	if err != nil {
		t.Fatal(err)
	}
	const limit = 2 * time.Second // for the WebSocket's handshake, too, on a busy machine
	s := serve(t, &chert.Server{Handler: h, ExtendedConnect: true, ReadTimeout: limit, WriteTimeout: limit, ReadHeaderTimeout: limit})
	c := s.shaken()
	for _, e := range []*exchange{c.socket(), c.socket(text("a"))} {
		time.Sleep(limit + limit/4) // longer than any of them
		e.Write(text("b"))
		e.upTo(echoes("b"))
	}
}

// A WebSocket with a goroutine of its own, which reads, and panics.
func TestWebSocketServe(t *testing.T) {
	t.Parallel()
	s := tunnels(t, &websocket.Options{Serve: func(c *websocket.Conn, r *http.Request) {
		for {
			typ, p, err := c.Read(context.Background())
			if err != nil {
				return
			}
			if string(p) == "panic" {
				panic(http.ErrAbortHandler)
			}
			c.Write(context.Background(), typ, p)
		}
	}})
	c := s.raw()
	one, two := c.socket(), c.socket()
	for _, e := range []*exchange{one, two} {
		e.Write(text("hello"))
		e.upTo(echoes("hello"))
	}
	one.Write(text("panic"))
	one.read()
	two.Write(text("still"))
	two.upTo(echoes("still"))
	two.Close()
	two.read()
}

// CONNECT has a body in both directions (RFC 9114 section 4.4).
func TestConnect(t *testing.T) {
	t.Parallel()
	s := serve(t, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "CONNECT" || r.Host != "example.com:1" || r.URL.Path != "" {
			t.Errorf("%s %s %s", r.Method, r.Host, r.URL)
		}
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		r.Method = "GET" // as a middleware may
		b := make([]byte, 100)
		for {
			n, err := r.Body.Read(b)
			w.Write(b[:n])
			w.(http.Flusher).Flush()
			if err == io.EOF {
				return
			} else if err != nil {
				panic(http.ErrAbortHandler)
			}
		}
	})})
	c := s.raw()
	e := c.open(false, headers(":method: CONNECT", ":authority: example.com:1"))
	for _, p := range []string{"one", "two"} {
		e.Write(data(p))
		e.upTo(p)
	}
	e.Close()
	if a := e.read(); a.err != nil {
		t.Errorf("%+v", a)
	}
	c.open(false, headers(":method: CONNECT", ":authority: example.com:1"), headers("a: b"))
	if got := c.ended(); got != "CLOSE H3_FRAME_UNEXPECTED" {
		t.Error(got)
	}
}

// A WebSocket whose client does not read is reset: the end of the stream within a frame would be an error of the
// connection (RFC 9114 section 7.1), which has other streams.
func TestStalledWebSocket(t *testing.T) {
	t.Parallel()
	closed := make(chan bool, 10)
	h, err := websocket.New(&websocket.Options{
		OnMessage: func(c *websocket.Conn, typ websocket.Type, p []byte) {
			c.Send(typ, make([]byte, 100_000))
			if string(p) == "close" {
				c.Close(websocket.CodeNormal, "")
			}
		},
		OnClose: func(*websocket.Conn, websocket.Code, string) { closed <- true },
	})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, &chert.Server{Handler: h, ExtendedConnect: true, WriteStallTimeout: 200 * time.Millisecond})
	for name, send := range map[string]func(e *exchange){
		"open":   func(e *exchange) { e.Write(text("open")) },
		"closed": func(e *exchange) { e.Write(text("close")) },
		"half closed": func(e *exchange) {
			e.Write(text("open"))
			e.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := s.at(t).bare(&quic.Config{InitialStreamReceiveWindow: 20_000, MaxStreamReceiveWindow: 20_000})
			c.control = c.uni(codec.StreamControl, codec.AppendSettings(nil))
			e := c.socket()
			send(e)
			servertest.Await(t, closed, "OnClose")
			if got := e.read().ending(); got != "RESET H3_REQUEST_CANCELLED" {
				t.Error(got)
			}
		})
	}
}
