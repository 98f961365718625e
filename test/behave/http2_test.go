package behave

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// The preface of HTTP/2 reaches the handler, which may take the connection
// over; if it does not, nothing can follow.
func TestHTTP2Preface(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		hijack := true
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			got := fmt.Sprint(r.Method, " ", r.RequestURI, " ", r.URL.Path, " ", r.Proto, " ", r.ProtoMajor, " ", r.ProtoMinor, " ",
				r.Close, " ", r.ContentLength, " ", len(r.Header), " ", r.Host, " ", r.TransferEncoding)
			if got != "PRI * * HTTP/2.0 2 0 true -1 0  []" {
				t.Errorf("the request is %q", got)
			}
			if !hijack {
				put(w, "no")
				return
			}
			nc, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			b := make([]byte, len("SM\r\n\r\nmore"))
			if _, err := io.ReadFull(rw, b); err != nil || string(b) != "SM\r\n\r\nmore" {
				t.Errorf("read %q, %v", b, err)
			}
			put(nc, "yes")
		})})
		const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nmore"
		for _, slowly := range []bool{false, true} {
			if got := ts.Exchange(preface, slowly); got != "yes" {
				t.Errorf("slowly=%v: got %q", slowly, got)
			}
		}
		// After another request too.
		c := ts.Dial()
		hijack = true
		c.Send(preface)
		c.Want("yes")
		c.Ended()
		hijack = false
		const want = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\nno"
		c = ts.Dial()
		c.Send(preface)
		c.CloseWrite()
		if got := servertest.Undated(c.UpToEnd()); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// The bytes that arrived with the preface are in the buffer.
func TestHTTP2PrefaceBuffered(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			nc, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			if n := rw.Reader.Buffered(); n != 6 {
				t.Errorf("%d bytes are buffered", n)
			}
			if b, err := rw.Peek(6); string(b) != "SM\r\n\r\n" || err != nil {
				t.Errorf("Peek gave %q, %v", b, err)
			}
		})})
		c := ts.Dial()
		c.Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
		c.Ended()
	})
}

// RFC 9113 section 3.3: prior knowledge is for plain text. Over TLS ALPN has chosen another
// protocol, or none, and the preface is a request of HTTP/1 that the handler may refuse.
func TestHTTP2PrefaceOverTLS(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		cert, roots := servertest.Certificate(t)
		s := &chert.Server{Engine: e, Protocols: new(http.Protocols), Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, r.Method, http.StatusBadRequest)
		})}
		s.Protocols.SetHTTP1(true)
		s.Protocols.SetHTTP2(true)
		s.Protocols.SetUnencryptedHTTP2(true)
		ts := engines.StartTLS(t, s, servertest.ListenTCP(t), cert)
		for _, protos := range [][]string{{"http/1.1"}, nil} {
			c, proto := servertest.TLSOver(t, servertest.Dial(t, ts.ListenAddr), roots, protos...)
			c.Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
			if line := c.Line(); line != "HTTP/1.1 400 Bad Request\r\n" {
				t.Errorf("after ALPN's %q: %q", proto, line)
			}
			c.Close()
		}
	})
}
