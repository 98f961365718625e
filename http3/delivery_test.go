package http3_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/quic-go/quic-go"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	codec "github.com/chert-http/chert/internal/http3"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// noted is a watcher that passes on the delivery.
type noted chan wire.Delivery

func (n noted) Keep()                {}
func (n noted) Sent(d wire.Delivery) { n <- d }

// Of a response that the client stops, about as many bytes are delivered as its window has let out: of a large one
// and of one that the server has gathered.
func TestDeliveryCutOff(t *testing.T) {
	t.Parallel()
	const window = 1000
	for name, size := range map[string]int{"large": 100_000, "gathered": 3500} {
		body := strings.Repeat("x", size)
		sent := make(noted, 1)
		mux := http.NewServeMux()
		mux.HandleFunc("/plain", func(w http.ResponseWriter, r *http.Request) {
			wire.Watch(w, sent)
			io.WriteString(w, body)
		})
		mux.HandleFunc("/pieces", func(w http.ResponseWriter, r *http.Request) {
			wire.Watch(w, sent)
			for p := []byte(body); len(p) > 0; p = p[100:] {
				w.Write(p[:100])
			}
		})
		mux.Handle("/direct", direct.HandlerFunc(func(x *direct.Exchange) {
			(*wire.Exchange)(x).Watch(sent)
			x.WriteString(body)
		}))
		s := serve(t, &chert.Server{Handler: mux})
		for _, p := range []string{"/plain", "/pieces", "/direct"} {
			c := s.bare(&quic.Config{InitialStreamReceiveWindow: window, MaxStreamReceiveWindow: window})
			e := c.open(true, headers(path(get, p)...))
			all := make([]byte, window)
			if n, err := io.ReadFull(e, all); err != nil {
				t.Fatalf("%s %s: %d bytes, %v", name, p, n, err)
			}
			e.CancelRead(quic.StreamErrorCode(codec.RequestCancelled))
			d := servertest.Await(t, sent, "the delivery")
			want := int64(len(all) - len(strings.TrimRight(string(all), "x"))) // and another window, since all was read
			if d.Complete || d.Body < want || d.Body > want+window {
				t.Errorf("%s %s: %+v, the client has %d bytes of the body", name, p, d, want)
			}
		}
	}
}
