package eventstream

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/middleware"
)

// TestMiddleware: streams and polls below middleware that wraps the response. A compressor
// that has been told to compress gets a goroutine to do it with.
func TestMiddleware(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		feed := topic(t, nil)
		open_ := handler(t, &eventstream.Options{OnOpen: joins(feed)})
		poll := polls(t, &eventstream.PollOptions{OnOpen: func(p *eventstream.Poll, _ *http.Request) { go p.Answer([]byte("answer")) }})
		accessLog := middleware.NewAccessLog(&middleware.AccessLogOptions{Output: io.Discard})
		t.Cleanup(func() { accessLog.Close() })
		mux := http.NewServeMux()
		mux.Handle("/", open_)
		mux.Handle("/poll", poll)
		mux.HandleFunc("/coded", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-store") // without no-transform
			open_.ServeHTTP(w, r)
		})
		var h http.Handler = mux
		for _, wrap := range []func(http.Handler) http.Handler{
			middleware.ETag(nil), middleware.Must(middleware.Compress(nil)), middleware.RequestID(nil), middleware.Recover(nil), accessLog.Wrap,
		} {
			h = wrap(h)
		}
		ts := engines.Start(t, fresh(h))
		e := open(ts, "Accept-Encoding: gzip")
		if got := e.head.Header; got.Get("Content-Encoding") != "" || got.Get("X-Request-Id") == "" {
			t.Error(got)
		}
		c := ts.Dial()
		c.Send(servertest.RawHead("GET /coded HTTP/1.1", "Host: h", "Accept-Encoding: gzip"))
		coded := response(c)
		if got := coded.head.Header; got.Get("Content-Encoding") != "gzip" {
			t.Error(got)
		}
		servertest.Eventually(t, "both have joined", func() bool { return feed.Len() == 2 })
		publish(t, feed, "a")
		e.wants("a")
		z, err := gzip.NewReader(coded.r)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		b := make([]byte, 1)
		for !strings.HasSuffix(got.String(), "data: a\n\n") { // comes without more being sent
			if _, err := z.Read(b); err != nil {
				t.Fatal(err)
			}
			got.Write(b)
		}
		for range 3 {
			if res, body := ts.Dial().Get("/poll"); body != "answer" {
				t.Error(res, body)
			}
		}
		open_.Close()
		e.event()
		e.ends()
		if got := ts.Log.String(); got != "" {
			t.Error(got)
		}
	})
}

// keeper keeps the status back, as some compressors do, until there is a Write or the handler has
// returned.
type keeper struct {
	http.ResponseWriter
	status int
}

func (k *keeper) WriteHeader(status int)      { k.status = status }
func (k *keeper) Flush()                      {}
func (k *keeper) Unwrap() http.ResponseWriter { return k.ResponseWriter }

func (k *keeper) Write(p []byte) (int, error) {
	k.begin()
	return k.ResponseWriter.Write(p)
}

func (k *keeper) begin() {
	if k.status != 0 {
		k.ResponseWriter.WriteHeader(k.status)
		k.status = 0
	}
}

// TestKeptBack: the status that comes late is that of the response, and no mistake.
func TestKeptBack(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		mux := http.NewServeMux()
		mux.Handle("/", handler(t, &eventstream.Options{OnOpen: func(s *eventstream.Stream, _ *http.Request) { s.Close() }}))
		mux.Handle("/poll", polls(t, &eventstream.PollOptions{
			OnOpen: func(p *eventstream.Poll, _ *http.Request) { p.Answer([]byte("answer")) },
		}))
		ts := engines.Start(t, fresh(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			k := &keeper{ResponseWriter: w}
			mux.ServeHTTP(k, r)
			k.begin()
		})))
		e := open(ts)
		e.event()
		e.ends()
		if _, body := ts.Dial().Get("/poll"); body != "answer" {
			t.Errorf("got %q", body)
		}
		if got := ts.Log.String(); got != "" {
			t.Error(got)
		}
	})
}

// TestCodedBesideHandlers: streams that take their handlers' goroutines are no handlers that run.
func TestCodedBesideHandlers(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		feed := topic(t, nil)
		h := handler(t, &eventstream.Options{OnOpen: joins(feed)})
		s := fresh(middleware.Must(middleware.Compress(nil))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-store") // without no-transform
			h.ServeHTTP(w, r)
		})))
		s.MaxHandlers = 1
		ts := engines.Start(t, s)
		for n := range 3 {
			if got := open(ts, "Accept-Encoding: gzip").head.Header; got.Get("Content-Encoding") != "gzip" {
				t.Error(got)
			}
			servertest.Eventually(t, "it has joined", func() bool { return feed.Len() == n+1 })
		}
		h.Close()
	})
}
