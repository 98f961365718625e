//lint:file-ignore SA1019 http.Transport refuses :protocol

package websocket

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/internal/wsframe"
	"github.com/chert-http/chert/websocket"
)

// streams opens WebSockets on streams of one connection.
func streams(t *testing.T, ts *engines.Server) func() (io.Writer, *bufio.Reader) {
	t.Helper()
	conns := 0
	tr := &http2.Transport{AllowHTTP: true, StrictMaxConcurrentStreams: true,
		DialTLSContext: func(ctx context.Context, network, addr string, _ *tls.Config) (net.Conn, error) {
			conns++
			return new(net.Dialer).DialContext(ctx, network, addr)
		}}
	t.Cleanup(tr.CloseIdleConnections)
	return func() (io.Writer, *bufio.Reader) {
		t.Helper()
		body, w := io.Pipe()
		req, err := http.NewRequest("CONNECT", "http://"+ts.ListenAddr+"/", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header[":protocol"] = []string{"websocket"}
		req.Header.Set("Sec-WebSocket-Version", "13")
		res, err := tr.RoundTrip(req)
		if err != nil || res.StatusCode != 200 || conns != 1 {
			t.Fatal(res, err, conns)
		}
		t.Cleanup(func() {
			w.Close()
			res.Body.Close()
		})
		return w, bufio.NewReader(res.Body)
	}
}

// TestUnfinished: the streams of one connection have unfinished messages of a bounded size
// together. A WebSocket beyond it ends with code 1013; those within it, and others with small
// messages, go on, and there is room again when messages are complete.
func TestUnfinished(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		if s := fresh(nil); !s.ExtendedConnect || s.Engine == engines.NetHTTP {
			t.Skip("for HTTP/2 on chert's server")
		}
		for _, way := range []string{"OnMessage", "Serve"} {
			const most = 64 << 10
			o := &websocket.Options{MaxMessage: most, OnMessage: echo, PingInterval: -1}
			if way == "Serve" {
				o.OnMessage, o.Serve = nil, serveEcho
			}
			ts := engines.Start(t, fresh(handler(t, o)))
			open := streams(t, ts)
			payload := strings.Repeat("x", most)
			part, end := frame(-2, payload[:most-1]), frame(0, payload[:1])
			var finish []func()
			closed := 0
			for range 40 {
				w, r := open()
				// A Ping in the message shows what has become of the part before it.
				go io.WriteString(w, part+frame(9, "kept"))
				switch h, p, err := readFrame(r); {
				case err != nil:
					t.Fatal(way, err)
				case h.Op == wsframe.Pong && p == "kept":
					finish = append(finish, func() {
						go io.WriteString(w, end)
						if h, p, err := readFrame(r); err != nil || h.Op != wsframe.Binary || p != payload {
							t.Fatalf("%s: %+v, %d bytes, %v", way, h, len(p), err)
						}
					})
				case h.Op == wsframe.Close:
					if code, reason, _ := wsframe.ParseClose([]byte(p)); websocket.Code(code) != websocket.CodeTryLater {
						t.Fatal(way, code, reason)
					}
					closed++
				}
			}
			// Four messages, and what does not count of each: 16 KiB.
			if kept := len(finish); kept != 5 || kept+closed != 40 {
				t.Errorf("%s: %d unfinished messages are kept, %d connections closed", way, kept, closed)
			}
			small, answers := open()
			go io.WriteString(small, frame(-1, strings.Repeat("y", 8<<10))+frame(0, "z"))
			if h, p, err := readFrame(answers); err != nil || h.Op != wsframe.Text || len(p) != 8<<10+1 {
				t.Fatalf("%s: %+v, %d bytes, %v", way, h, len(p), err)
			}
			for _, f := range finish {
				f()
			}
			w, r := open()
			finishes := make(chan bool)
			go func() {
				io.WriteString(w, part+end)
				close(finishes)
			}()
			if h, p, err := readFrame(r); err != nil || h.Op != wsframe.Binary || p != payload {
				t.Fatalf("%s: afterwards %+v, %d bytes, %v", way, h, len(p), err)
			}
			servertest.Await(t, finishes, "the message")
		}
	})
}
