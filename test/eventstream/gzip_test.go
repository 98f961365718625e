package eventstream

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/middleware"
)

// unzip makes e the events of a compressed stream.
func unzip(e *events) *events {
	e.t.Helper()
	h := e.head.Header
	if h.Get("Content-Encoding") != "gzip" || h.Get("Vary") != "Accept-Encoding" || e.head.ContentLength != -1 {
		e.t.Fatal(h)
	}
	z, err := gzip.NewReader(e.r)
	if err != nil {
		e.t.Fatal(err)
	}
	z.Multistream(false) // a second member would be data
	e.r = bufio.NewReader(z)
	return e
}

func openGzip(ts *engines.Server, fields ...string) *events {
	ts.T.Helper()
	return unzip(open(ts, append(fields, "Accept-Encoding: gzip")...))
}

// TestGzip: events of all kinds, each of which arrives without more being sent, history,
// and the end.
func TestGzip(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		feed := topic(t, nil)
		streams := make(chan *eventstream.Stream, 10)
		h := handler(t, &eventstream.Options{OnOpen: func(s *eventstream.Stream, _ *http.Request) {
			s.Send(eventstream.Event{Data: "hello"})
			feed.Join(s)
			streams <- s
		}, MaxUnsent: 4 << 20, Compression: true})
		ts := engines.Start(t, fresh(h))
		e := openGzip(ts)
		s := servertest.Await(t, streams, "the stream")
		e.wants("hello")
		noise := make([]byte, 100_000)
		for i := range noise {
			if noise[i] = byte(rand.Uint32()); strings.IndexByte("\x00\r\n|", noise[i]) >= 0 {
				noise[i] = 'x'
			}
		}
		for _, data := range []string{"x", "\u00fc\u00f6", strings.Repeat("long ", 100_000), string(noise), "after"} {
			publish(t, feed, data)
			e.wants(data)
			s.Send(eventstream.Event{Data: data})
			e.wants(data)
		}
		last := e.last
		publish(t, feed, numbered(0, 500)...)
		e.wants(numbered(0, 500)...)
		for range 2 {
			again := openGzip(ts, "Last-Event-ID: "+last)
			again.wants("hello")
			again.wants(numbered(0, 500)...)
		}
		plain := open(ts, "Last-Event-ID: "+last)
		plain.wants("hello")
		plain.wants(numbered(0, 500)...)
		if v := plain.head.Header; v.Get("Vary") != "Accept-Encoding" || v.Get("Content-Encoding") != "" {
			t.Error(v)
		}
		s.Close()
		e.ends()
	})
}

// TestGzipEnds: a stream that ends by its age, by Close of the Handler, and over
// HTTP/1.0 ends as gzip does, and heartbeats are part of it.
func TestGzipEnds(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		for name, o := range map[string]*eventstream.Options{
			"age": {MaxAge: 50 * soon, Heartbeat: soon}, "close": {Heartbeat: soon, Retry: -1}, "handler": {Heartbeat: -1},
		} {
			streams := make(chan *eventstream.Stream, 1)
			o.Compression = true
			o.OnOpen = func(s *eventstream.Stream, _ *http.Request) {
				s.Send(eventstream.Event{Data: "a"})
				streams <- s
			}
			h := handler(t, o)
			ts := engines.Start(t, fresh(h))
			for _, version := range []string{"1.0", "1.1"} {
				if name == "handler" && version == "1.1" {
					continue
				}
				c := ts.Dial()
				c.Send(servertest.RawHead("GET / HTTP/"+version, "Host: h", "Connection: close", "Accept-Encoding: gzip"))
				e := unzip(response(c))
				s := servertest.Await(t, streams, "the stream")
				until := map[string]string{"close": "\n\n:\n\n", "handler": "data: a\n\n"}[name]
				var body []byte
				for !strings.Contains(string(body), until) { // a heartbeat, where there are some
					b, err := e.r.ReadByte()
					if err != nil {
						t.Fatalf("%s %s: %q %v", name, version, body, err)
					}
					body = append(body, b)
				}
				switch name {
				case "close":
					s.Close()
				case "handler":
					h.Close()
				}
				rest, err := io.ReadAll(e.r)
				if body = append(body, rest...); err != nil || !strings.Contains(string(body), "data: a\n\n") {
					t.Errorf("%s %s: %q %v", name, version, body, err)
				}
				c.UpToEnd()
			}
		}
	})
}

// TestGzipChosen: only clients that prefer gzip get it, with HEAD as with GET, and only if
// nothing else has coded the response.
func TestGzipChosen(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		h := handler(t, &eventstream.Options{OnOpen: func(s *eventstream.Stream, _ *http.Request) {
			s.Send(eventstream.Event{Data: "a"})
			s.Close()
		}, Compression: true})
		ts := engines.Start(t, fresh(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/coded" {
				w.Header().Set("Content-Encoding", "private")
			}
			if r.URL.Path == "/vary" {
				w.Header().Set("Vary", "Origin, Accept-Encoding")
			}
			h.ServeHTTP(w, r)
		})))
		for _, tt := range []struct{ path, accept, coding, vary string }{
			{"/", "gzip, deflate, br, zstd", "gzip", "Accept-Encoding"},
			{"/", "x-gzip;q=0.1", "gzip", "Accept-Encoding"},
			{"/", "*", "gzip", "Accept-Encoding"},
			{"/", "br, zstd", "", "Accept-Encoding"},
			{"/", "gzip;q=0", "", "Accept-Encoding"},
			{"/", "gzip;q=0.5, identity", "", "Accept-Encoding"},
			{"/", "", "", "Accept-Encoding"},
			{"/vary", "gzip", "gzip", "Origin, Accept-Encoding"},
			{"/coded", "gzip", "private", "Accept-Encoding"},
		} {
			for _, method := range []string{"HEAD", "GET"} {
				c := ts.Dial()
				c.Send(servertest.RawHead(method+" "+tt.path+" HTTP/1.1", "Host: h", "Accept-Encoding: "+tt.accept))
				res, body := c.Response(method)
				got := res.Header
				if got.Get("Content-Encoding") != tt.coding || strings.Join(got["Vary"], "; ") != tt.vary || got.Get("Content-Length") != "" {
					t.Errorf("%s %+v: %v", method, tt, got)
				}
				if zipped := strings.HasPrefix(body, "\x1f\x8b"); zipped != (tt.coding == "gzip" && method == "GET") {
					t.Errorf("%s %+v: %q", method, tt, body)
				}
			}
		}
	})
}

// TestGzipMiddleware: what is compressed is not compressed again, and takes no goroutine
// for middleware that passes it on.
func TestGzipMiddleware(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		feed := topic(t, nil)
		open_ := handler(t, &eventstream.Options{OnOpen: joins(feed), Compression: true})
		returned := make(chan bool, 10)
		var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-cache") // without no-transform
			open_.ServeHTTP(w, r)
			returned <- true
		})
		for _, wrap := range []func(http.Handler) http.Handler{middleware.Must(middleware.Compress(nil)), middleware.ETag(nil), middleware.Recover(nil)} {
			h = wrap(h)
		}
		ts := engines.Start(t, fresh(h))
		e := openGzip(ts)
		if ts.Engine != engines.NetHTTP {
			servertest.Await(t, returned, "the handler")
		}
		servertest.Eventually(t, "it has joined", func() bool { return feed.Len() == 1 })
		publish(t, feed, "a", "b")
		e.wants("a", "b")
		open_.Close()
		e.event()
		e.ends()
		if got := ts.Log.String(); got != "" {
			t.Error(got)
		}
	})
}

// TestGzipFull: an empty stream is not compressed.
func TestGzipFull(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		h := handler(t, &eventstream.Options{MaxStreams: 1, Compression: true})
		ts := engines.Start(t, fresh(h))
		openGzip(ts)
		servertest.Eventually(t, "it is open", func() bool { return h.Len() == 1 })
		e := open(ts, "Accept-Encoding: gzip")
		if got := e.head.Header; got.Get("Content-Encoding") != "" {
			t.Error(got)
		}
		e.ends()
	})
}

// TestGzipSlow: a client that reads slowly gets, with SlowDrop, what there still is, also
// after events that it has not got.
func TestGzipSlow(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		feed := topic(t, &eventstream.TopicOptions{HistoryEvents: 100})
		s := fresh(handler(t, &eventstream.Options{OnOpen: joins(feed), Slow: eventstream.SlowDrop, MaxUnsent: 16 << 10, Compression: true}))
		ts := engines.StartOn(t, s, servertest.ListenSmall(t, 16<<10))
		lazy, quick := openGzip(ts), openGzip(ts)
		servertest.Eventually(t, "both have joined", func() bool { return feed.Len() == 2 })
		const count = 1000
		for i := range count {
			noise := make([]byte, 1+i%2*6000) // some with what they refer to, some without
			for j := range noise {
				noise[j] = 'a' + byte(rand.Uint32()%26)
			}
			want := fmt.Sprint(i, " ", string(noise))
			publish(t, feed, want)
			quick.wants(want)
		}
		skipped, next := 0, 0
		for next < count {
			var i int
			var rest string
			if _, err := fmt.Sscan(lazy.data(), &i, &rest); err != nil || i < next || len(rest) != 1+i%2*6000 {
				t.Fatal(i, next, err)
			}
			skipped += i - next
			next = i + 1
		}
		if skipped == 0 {
			t.Error("all of it was kept")
		}
		publish(t, feed, numbered(0, 100)...)
		lazy.wants(numbered(0, 100)...)
	})
}

// TestGzipNoGoroutines: a compressed stream on a loop has none.
func TestGzipNoGoroutines(t *testing.T) {
	eachAlone(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		s := fresh(nil)
		if s.Engine != chert.EngineLoops {
			t.Skip("a goroutine each")
		}
		feed := topic(t, nil)
		s.Handler = handler(t, &eventstream.Options{OnOpen: joins(feed), Compression: true})
		ts := engines.Start(t, s)
		const count = 500
		before := runtime.NumGoroutine()
		var all []*events
		for range count {
			all = append(all, openGzip(ts))
		}
		servertest.Eventually(t, "all have joined", func() bool { return feed.Len() == count })
		servertest.Eventually(t, "goroutines have ended", func() bool { return runtime.NumGoroutine() < before+count/10 })
		publish(t, feed, "a")
		for _, e := range all {
			e.wants("a")
		}
	})
}

// TestGzipCurl: curl shows events as they come, and has no objection to the end.
func TestGzipCurl(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		if os.Getenv("CHERT_REQUIRE_ALL") == "1" {
			t.Fatal("curl is not installed; the Debian package is curl")
		}
		t.Skip("curl is not installed; the Debian package is curl")
	}
	eachProtocol(t, func(t *testing.T, start func(http.Handler) *site) {
		feed := topic(t, nil)
		h := handler(t, &eventstream.Options{OnOpen: joins(feed), Compression: true})
		x := start(h)
		args := []string{"--compressed", "--no-buffer", "--silent", "--show-error", "--insecure", "--include", "--max-time", fmt.Sprint(int(servertest.Patience.Seconds()))}
		if strings.HasSuffix(t.Name(), "h2c") {
			args = append(args, "--http2-prior-knowledge")
		}
		cmd := exec.Command(curl, append(args, x.url)...)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		servertest.Eventually(t, "it has joined", func() bool { return feed.Len() == 1 })
		r := bufio.NewReader(out)
		coded := false
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			coded = coded || strings.EqualFold(strings.TrimSpace(line), "content-encoding: gzip")
			if strings.TrimSpace(line) == "" {
				break
			}
		}
		if !coded {
			t.Error("it is not compressed")
		}
		e := &events{t: t, r: r}
		for _, data := range numbered(0, 50) {
			publish(t, feed, data)
			e.wants(data)
		}
		h.Close()
		if got := e.event(); got != "event: shutdown|data: " {
			t.Errorf("%q", got)
		}
		e.ends()
		if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
			t.Errorf("%v %s", err, stderr.String())
		}
	})
}

// TestGzipProtocols: Go's client, which asks for gzip by itself.
func TestGzipProtocols(t *testing.T) {
	eachProtocol(t, func(t *testing.T, start func(http.Handler) *site) {
		feed := topic(t, nil)
		h := handler(t, &eventstream.Options{OnOpen: joins(feed), Compression: true, MaxUnsent: 4 << 20})
		x := start(h)
		var all []*events
		for range 5 {
			e, _ := x.open("")
			if !e.head.Uncompressed {
				t.Error("it is not compressed")
			}
			all = append(all, e)
		}
		servertest.Eventually(t, "all have joined", func() bool { return feed.Len() == len(all) })
		want := slices.Concat(numbered(0, 300), []string{strings.Repeat("x", 1<<20)}, numbered(300, 400))
		publish(t, feed, want...)
		for _, e := range all {
			e.wants(want...)
		}
		h.Close()
		for _, e := range all {
			e.event()
			e.ends()
		}
	})
}

// TestGzipChaos: publishers, and compressed clients that come and go; each of them decodes
// all that it gets, and some to the end.
func TestGzipChaos(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		feed := topic(t, &eventstream.TopicOptions{HistoryEvents: 50})
		var opened, ended atomic.Int64
		h := handler(t, &eventstream.Options{OnOpen: func(s *eventstream.Stream, _ *http.Request) {
			feed.JoinAfter(s, "an event that is too old")
			if n := opened.Add(1); n%3 == 0 {
				time.AfterFunc(soon, func() { s.Send(eventstream.Event{Data: "y"}) })
			}
		}, Heartbeat: soon, MaxAge: 5 * soon, MaxUnsent: 64 << 10, Compression: true, Slow: eventstream.SlowDrop})
		ts := engines.Start(t, fresh(h))
		ts.Control.RegisterOnShutdown(h.Close)
		var wait sync.WaitGroup
		stop := make(chan struct{})
		loop := func(f func(i int)) {
			wait.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
						f(i)
					}
				}
			})
		}
		loop(func(i int) {
			feed.Publish(eventstream.Event{Data: strings.Repeat("x", i*i%3000)})
			if i%20 == 0 {
				time.Sleep(soon / 20) // so that they come one by one, too
			}
		})
		for range 4 {
			loop(func(i int) {
				nc, err := net.Dial("tcp", ts.ListenAddr)
				if err != nil {
					return
				}
				defer nc.Close()
				nc.SetDeadline(time.Now().Add(servertest.Patience))
				nc.Write([]byte(servertest.RawHead("GET / HTTP/1.1", "Host: h", "Accept-Encoding: gzip")))
				res, err := http.ReadResponse(bufio.NewReader(nc), nil)
				if err != nil || res.Header.Get("Content-Encoding") == "" {
					return // it is being shut down
				}
				z, err := gzip.NewReader(res.Body)
				if err != nil {
					return
				}
				var r io.Reader = z
				if i%2 == 0 {
					r = io.LimitReader(z, int64(i%50*100))
				}
				n, err := io.Copy(io.Discard, r)
				if err != nil {
					t.Errorf("after %d bytes: %v", n, err)
				} else if i%2 == 1 {
					ended.Add(1)
				}
			})
		}
		servertest.Eventually(t, "some have ended", func() bool { return ended.Load() > 5 })
		ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
		defer cancel()
		if err := ts.Control.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		close(stop)
		wait.Wait()
		servertest.Eventually(t, "all have ended", func() bool { return h.Len() == 0 && feed.Len() == 0 })
	})
}
