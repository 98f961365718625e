package h2_test

import (
	"net/http"
	"testing"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
)

// A handler that waits for its turn goes on when the response that is before it is reset,
// also if the windows have opened in the same moment.
func TestTurnOfAResetStream(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: body})
		for range 20 { // the handler may not wait yet
			c := s.raw()
			if a := c.get(1, "/65535"); len(a.body) != 65535 { // all of the connection's window
				t.Fatalf("%+v", a)
			}
			c.headers(3, true, with(path(get, "/3000"), "priority: u=0")...)
			c.headers(5, true, with(path(get, "/50000"), "priority: u=5")...)
			c.send()
			for heads := 0; heads < 2; {
				if _, ok := c.next().(*http2.HeadersFrame); ok {
					heads++
				}
			}
			c.fr.WriteWindowUpdate(0, 1<<20)
			c.fr.WriteRSTStream(3, http2.ErrCodeCancel)
			c.send()
			got := 0
			for end := false; !end; {
				f := c.next()
				if f == nil {
					t.Fatal("closed")
				}
				if d, ok := f.(*http2.DataFrame); ok && d.StreamID == 5 {
					got += len(d.Data())
					end = d.StreamEnded()
				}
			}
			if got != 50000 {
				t.Errorf("%d bytes", got)
			}
			c.Close()
		}
	})
}

// Windows of a byte each do not earn what opening them costs: a client that opens nothing
// else is sent away.
func TestByteWindows(t *testing.T) {
	t.Parallel()
	attacked(t, calm, hf(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			w.Write(make([]byte, 1<<20))
		}
	}), func(c *raw) string {
		const streams = 100
		c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		for i := range uint32(streams) {
			c.headers(2*i+1, true, path(get, "/long")...)
		}
		c.send()
		update := c.times(streams, func(i uint32) { c.fr.WriteWindowUpdate(2*i+1, 1) })
		var a answer
		for range 1000 {
			if _, err := c.Write(update); err != nil {
				break
			}
			for n := 0; n < streams; {
				switch f := c.next().(type) {
				case nil:
					a.closed = true
					return a.outcome()
				case *http2.GoAwayFrame:
					a.goaway = f.ErrCode.String()
					return a.outcome()
				case *http2.DataFrame:
					n++
				}
			}
		}
		return "nothing"
	})
}
