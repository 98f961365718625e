package http3_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// A direct handler that is stuck has a line.
func TestSlowDirect(t *testing.T) {
	t.Parallel()
	stay := make(chan bool)
	release := sync.OnceFunc(func() { close(stay) })
	defer release()
	s := serve(t, &chert.Server{SlowHandler: 20 * time.Millisecond, Handler: direct.HandlerFunc(func(x *direct.Exchange) {
		<-stay
		x.WriteString("hello")
	})})
	c := s.raw()
	e := c.open(true, headers(path(get, "/stuck")...))
	servertest.Eventually(t, "it is logged", func() bool { return strings.Contains(s.log.String(), ` (direct, handler)`) })
	if log := s.log.String(); !strings.Contains(log, `chert: GET "/stuck" from `+c.LocalAddr().String()+" has been running for ") {
		t.Error(log)
	}
	servertest.Eventually(t, "it is running", func() bool { return s.Stats().Running == 1 })
	release()
	if a := e.read(); a.body != "hello" {
		t.Errorf("%+v", a)
	}
	servertest.Eventually(t, "none is running", func() bool { return s.Stats().Running == 0 })
}

// An answer of a direct handler is shown while its client does not take it.
func TestSendingDirect(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	const size = 300_000
	if err := file.Truncate(size); err != nil {
		t.Fatal(err)
	}
	s := serve(t, &chert.Server{WriteStallTimeout: -1, Handler: direct.HandlerFunc(func(x *direct.Exchange) {
		if string(x.Path()) == "/file" {
			x.SendFile(direct.File{File: file, Len: size})
			return
		}
		x.Write(make([]byte, size))
	})})
	for _, p := range []string{"/file", "/memory"} {
		c := s.bare(&quic.Config{InitialStreamReceiveWindow: 20_000, MaxStreamReceiveWindow: 20_000})
		e := c.open(true, headers(path(get, p)...))
		servertest.Eventually(t, "it is shown", func() bool {
			all := s.RunningRequests(10)
			return len(all) == 1 && all[0].Target == p && all[0].Stage == "write" && all[0].Protocol == "HTTP/3.0"
		})
		if a := e.read(); len(a.body) != size || a.ending() != "200" {
			t.Errorf("%d bytes, %s", len(a.body), a.ending())
		}
		servertest.Eventually(t, "it is not shown", func() bool { return len(s.RunningRequests(10)) == 0 })
	}
}

// What goes through the UDP socket is among the bytes of sockets.
func TestBytes(t *testing.T) {
	t.Parallel()
	s := serve(t, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })})
	const size = 300_000
	if a := s.raw().do(headers(post...), data(strings.Repeat("x", size))); len(a.body) != size {
		t.Fatalf("%d bytes, %s", len(a.body), a.ending())
	}
	servertest.Eventually(t, "all is counted", func() bool {
		n := s.Stats()
		return n.BytesRead > size && n.BytesWritten > size
	})
}
