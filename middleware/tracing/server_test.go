package tracing

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/chertest"
	"github.com/chert-http/chert/metrics"
	"github.com/chert-http/chert/websocket"
)

// The wait for a slot is part of the span, and what precedes handler.start.
func TestWait(t *testing.T) {
	t.Parallel()
	for _, engine := range []chert.Engine{chert.EngineAuto, chert.EngineGoroutines} {
		tp, rec := recorder()
		entered, release := make(chan struct{}), make(chan struct{})
		s := chertest.NewUnstartedServer(New(&Options{TracerProvider: tp})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			entered <- struct{}{}
			<-release
		})))
		s.Config.MaxHandlers, s.Config.Engine = 1, engine
		s.Start()
		defer s.Close()
		done := make(chan struct{})
		ask := func() {
			get(t, s.Client(), s.URL)
			done <- struct{}{}
		}
		go ask()
		<-entered
		go ask()
		for deadline := time.Now().Add(time.Minute); s.Config.Stats().Waiting == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("no request waits")
			}
		}
		time.Sleep(3 * time.Millisecond) // how long requests wait is known to a millisecond
		free := time.Now()
		release <- struct{}{}
		<-entered
		release <- struct{}{}
		<-done
		<-done
		second := ended(t, rec, 2)[0] // which of the two ends first is open
		if other := rec.Ended()[1]; other.Events()[0].Time.After(second.Events()[0].Time) {
			second = other
		}
		if begun := second.Events()[0].Time; !second.StartTime().Before(free) || !begun.After(free) {
			t.Errorf("engine %v: the slot was free at %v, the span began at %v, the handler at %v", engine, free, second.StartTime(), begun)
		}
	}
}

// Spans of both paths have the same attributes, over HTTP/2 too.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	for _, h := range []http.Handler{plainHello, hello} {
		tp, rec := recorder()
		s := chertest.NewUnstartedServer(New(&Options{TracerProvider: tp})(h))
		s.EnableHTTP2 = true
		s.StartTLS()
		defer s.Close()
		if resp, body := get(t, s.Client(), s.URL+"/a"); body != "hello" || resp.ProtoMajor != 2 {
			t.Errorf("%q, %v", body, resp)
		}
		span := ended(t, rec, 1)[0]
		if attr(span, "network.protocol.version") != "2" || attr(span, "url.scheme") != "https" ||
			attr(span, "http.response.body.size") != "5" || !span.Events()[0].Time.After(span.StartTime()) {
			t.Errorf("%v, %v, %v", span.Attributes(), span.StartTime(), span.Events())
		}
	}
}

// A WebSocket opens through the middleware, and the span is that of its handshake.
func TestWebSocket(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, start func(http.Handler) (string, *http.Client)) {
		tp, rec := recorder()
		echo, err := websocket.New(&websocket.Options{OnMessage: func(c *websocket.Conn, typ websocket.Type, p []byte) { c.Send(typ, p) }})
		if err != nil {
			t.Fatal(err)
		}
		url, _ := start(New(&Options{TracerProvider: tp})(echo))
		nc, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		fmt.Fprint(nc, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
		br := bufio.NewReader(nc)
		resp, err := http.ReadResponse(br, nil)
		if err != nil || resp.StatusCode != 101 {
			t.Fatalf("%v, %v", resp, err)
		}
		nc.Write([]byte{0x81, 0x81, 0, 0, 0, 0, 'x'})
		frame := make([]byte, 3)
		if _, err := io.ReadFull(br, frame); err != nil || string(frame) != "\x81\x01x" {
			t.Errorf("%q, %v", frame, err)
		}
		nc.Close() // the span ends with the WebSocket
		if span := ended(t, rec, 1)[0]; attr(span, "http.response.status_code") != "101" || span.Status().Code != codes.Unset {
			t.Errorf("%v, %v", span.Attributes(), span.Status())
		}
	})
}

// Traces are exemplars of package metrics.
func TestExemplars(t *testing.T) {
	t.Parallel()
	tp, rec := recorder()
	var exemplars metrics.Exemplars
	mux := http.NewServeMux()
	mux.Handle("GET /a", plainHello)
	s := chertest.NewServer(New(&Options{TracerProvider: tp, Observe: exemplars.Observe})(mux))
	defer s.Close()
	get(t, s.Client(), s.URL+"/a")
	id := ended(t, rec, 1)[0].SpanContext().TraceID()
	// One bucket: the durations of the server and of the span differ a little.
	h := metrics.Handler(s.Config, &metrics.Options{Exemplars: &exemplars, Buckets: []time.Duration{time.Hour}, MaxAge: -1})
	want := `trace_id="` + hex.EncodeToString(id[:]) + `"`
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		// The server counts a request when it is done with it.
		if strings.Contains(w.Body.String(), want) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %s in\n%s", want, w.Body)
		}
	}
}
