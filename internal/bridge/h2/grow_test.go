package h2_test

import (
	"io"
	"net/http"
	"testing"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
)

// The windows of an upload grow when the client has used them up before it is heard
// of, which is what delay does, up to a bound; not if HTTP2Config sets them, and not if
// nothing is read.
func TestWindowsGrow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		cfg  *http.HTTP2Config
		read bool
		most int // that the client may send at a time
		more bool
	}{
		{"grow", nil, true, 4 << 20, true},
		{"set", &http.HTTP2Config{MaxReceiveBufferPerStream: 1 << 20}, true, 1 << 20, false},
		{"unread", nil, false, 1 << 20, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			each(t, "oracle", func(t *testing.T, kind string) {
				end := make(chan bool)
				s := serve(t, kind, &chert.Server{HTTP2: tt.cfg, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
					if tt.read {
						io.Copy(io.Discard, r.Body)
					} else {
						<-end
					}
				})})
				defer close(end)
				c := s.raw()
				// What the client may send, of the connection and of the stream.
				conn, stream, widest := 65535, 1<<20, 0
				all := 15 << 16 // nearly all of the window
				data := make([]byte, 16<<10)
				c.headers(1, false, post...)
				var ping *http2.PingFrame
				handle := func(f http2.Frame) {
					switch f := f.(type) {
					case *http2.WindowUpdateFrame:
						if f.StreamID == 0 {
							conn += int(f.Increment)
						} else {
							stream += int(f.Increment)
						}
					case *http2.PingFrame:
						if !f.IsAck() {
							ping = &http2.PingFrame{Data: f.Data}
						}
					case nil:
						t.Fatal("closed")
					}
				}
				for conn < 1<<20 {
					handle(c.next())
				}
				for range 8 {
					widest = max(widest, min(conn, stream))
					for conn > 0 && stream > 0 {
						n := min(conn, stream, len(data))
						c.fr.WriteData(1, false, data[:n])
						conn, stream = conn-n, stream-n
						c.send()
					}
					if !tt.read {
						break
					}
					// It hears of the server when it has sent all that it may.
					c.fr.WritePing(false, [8]byte{1})
					c.send()
					for conn < all || stream < all {
						handle(c.next())
					}
					if ping != nil {
						c.fr.WritePing(true, ping.Data)
						ping, all = nil, 31<<16
					}
				}
				if widest > tt.most || tt.more && widest < 31<<16 {
					t.Errorf("the client could send %d bytes at a time", widest)
				}
				if conn > tt.most || stream > tt.most {
					t.Errorf("the windows are %d and %d", conn, stream)
				}
			})
		})
	}
}

// Padding, which no handler reads, does not make windows larger.
func TestPaddingGrowsNoWindow(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		c := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
		})}).raw()
		c.headers(1, false, post...)
		c.send()
		for c.opened < 1<<19 {
			c.next()
		}
		for range 1100 { // more than a quarter of the window, of which a sample begins
			c.fr.WriteDataPadded(1, false, []byte{0}, make([]byte, 255))
		}
		c.fr.WritePing(false, [8]byte{1})
		c.send()
		for {
			switch f := c.next().(type) {
			case nil:
				t.Fatal("closed")
			case *http2.PingFrame:
				if !f.IsAck() {
					t.Error("the server measures")
				}
				return
			}
		}
	})
}
