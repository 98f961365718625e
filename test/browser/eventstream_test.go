package browser

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chromedp/chromedp"
)

// An EventSource gets compressed events as they come, connects again when its stream has
// ended, and then misses none.
func TestCompressedEvents(t *testing.T) {
	t.Parallel()
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto, func(t *testing.T) {
			t.Parallel()
			testCompressedEvents(t, proto)
		})
	}
}

func testCompressedEvents(t *testing.T, proto string) {
	topic, err := eventstream.NewTopic(nil)
	if err != nil {
		t.Fatal(err)
	}
	streams := make(chan *eventstream.Stream, 10)
	feed, err := eventstream.New(&eventstream.Options{
		OnOpen: func(s *eventstream.Stream, r *http.Request) {
			s.Send(eventstream.Event{Type: "proto", Data: r.Proto})
			topic.Join(s)
			streams <- s
		},
		Compression: true, Retry: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	codings := make(chan string, 10)
	mux := http.NewServeMux()
	mux.HandleFunc("/feed", func(w http.ResponseWriter, r *http.Request) {
		feed.ServeHTTP(w, r)
		codings <- w.Header().Get("Content-Encoding")
	})
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!DOCTYPE html><link rel=icon href=data:,><title>events</title>")
	})
	s := &chert.Server{Handler: mux}
	l, err := s.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	origin, serve := "http://"+l.Addr().String(), func() error { return s.Serve(l) }
	var flags []chromedp.ExecAllocatorOption
	if proto == "HTTP/2.0" {
		cert, _ := servertest.Certificate(t)
		leaf, err := x509.ParseCertificate(cert.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}}
		origin, serve = "https://"+l.Addr().String(), func() error { return s.ServeTLS(l, "", "") }
		key := sha256.Sum256(leaf.RawSubjectPublicKeyInfo)
		flags = append(flags, chromedp.Flag("ignore-certificate-errors-spki-list", base64.StdEncoding.EncodeToString(key[:])))
	}
	served := make(chan error, 1)
	go func() { served <- serve() }()
	t.Cleanup(func() {
		s.Close()
		if err := servertest.Await(t, served, "Serve"); err != http.ErrServerClosed {
			t.Errorf("Serve returned %v", err)
		}
	})
	tab := startTab(t, origin, flags...) // source.close counts as a fault
	tab.visit(t, origin+"/")
	// Each event is published when the one before has arrived, so none may be held back.
	if got := eval[string](t, tab, `(() => {
		window.all = [];
		window.source = new EventSource('/feed');
		return new Promise(done => {
			source.addEventListener('proto', e => done(e.data));
			source.onmessage = e => { all.push(e.data); if (window.arrived) arrived(); };
		});
	})()`); got != proto {
		t.Errorf("the stream came by %q", got)
	}
	publish := func(data string) {
		t.Helper()
		if _, err := topic.Publish(eventstream.Event{Data: data}); err != nil {
			t.Fatal(err)
		}
		got := eval[bool](t, tab, `new Promise(done => {
			window.arrived = () => { if (all.at(-1).startsWith('`+data[:4]+`')) done(true); };
			if (all.length) arrived();
		})`)
		if !got {
			t.Error(data)
		}
	}
	var want []string
	for i := range 30 {
		data := fmt.Sprintf("%04d an event like those before it", i)
		if i%10 == 5 {
			data += strings.Repeat(" and a long one", 10_000)
		}
		want = append(want, data)
		publish(data)
		if i%10 == 9 { // the last one has arrived
			servertest.Await(t, streams, "the stream").Close()
			if got := servertest.Await(t, codings, "the handler"); got != "gzip" {
				t.Errorf("the coding is %q", got)
			}
		}
	}
	if got := eval[[]string](t, tab, "source.close(), all"); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%d events, want %d", len(got), len(want))
	}
}
