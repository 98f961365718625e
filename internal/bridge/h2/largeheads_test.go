package h2_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
)

// Answers with large fields, which a client does not read for a while, wait for it, and
// arrive as they were made. Other clients are served meanwhile.
func TestLargeHeads(t *testing.T) {
	t.Parallel()
	const streams, size = 100, 60_000
	value := func(path string) string { return path + strings.Repeat("~", size-len(path)) }
	plain := hf(func(w http.ResponseWriter, r *http.Request) {
		switch p := r.URL.Path; {
		case p == "/":
		case strings.HasSuffix(p, "1"):
			w.Header().Set("Trailer", "X-Large")
			defer w.Header().Set("X-Large", value(p))
		case strings.HasSuffix(p, "3"):
			w.Header().Set("X-Large", value(p))
			w.WriteHeader(http.StatusEarlyHints)
		case strings.HasSuffix(p, "5"):
			w.Header().Set("X-Large", value(p))
			w.(http.Flusher).Flush()
		default:
			w.Header().Set("X-Large", value(p))
		}
		io.WriteString(w, r.URL.Path)
	})
	d := direct.HandlerFunc(func(x *direct.Exchange) {
		if p := string(x.Path()); p != "/" {
			x.SetHeader("X-Large", value(p))
		}
		x.Write(x.Path())
	})
	each(t, "oracle", func(t *testing.T, kind string) {
		for _, h := range []http.Handler{plain, d} {
			s := serve(t, kind, &chert.Server{Handler: h})
			c := s.raw(http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: 1 << 20})
			for i := range uint32(streams) {
				c.headers(2*i+1, true, path(get, fmt.Sprint("/", 2*i+1))...)
			}
			c.send()
			for range 3 { // while the first client reads nothing
				if a := s.raw().get(1, "/"); a.body != "/" {
					t.Fatalf("another client: %+v", a)
				}
			}
			large, bodies, ended := map[uint32]string{}, map[uint32]string{}, 0
			for ended < streams {
				switch f := c.next().(type) {
				case nil:
					t.Fatal("closed")
				case *http2.GoAwayFrame, *http2.RSTStreamFrame:
					t.Fatal(f)
				case *http2.HeadersFrame:
					block, end := f.HeaderBlockFragment(), f.HeadersEnded()
					block = append([]byte(nil), block...)
					id, last := f.StreamID, f.StreamEnded()
					for !end {
						more, ok := c.next().(*http2.ContinuationFrame)
						if !ok || more.StreamID != id {
							t.Fatalf("%v within a header block", more)
						}
						block, end = append(block, more.HeaderBlockFragment()...), more.HeadersEnded()
					}
					for _, field := range must(c.dec.DecodeFull(block)) {
						if field.Name == "x-large" {
							large[id] = field.Value
						}
					}
					if last {
						ended++
					}
				case *http2.DataFrame:
					bodies[f.StreamID] += string(f.Data())
					if f.StreamEnded() {
						ended++
					}
				}
			}
			for i := range uint32(streams) {
				p := fmt.Sprint("/", 2*i+1)
				if bodies[2*i+1] != p || large[2*i+1] != value(p) {
					t.Errorf("%s: body %q, %d bytes of a field", p, bodies[2*i+1], len(large[2*i+1]))
				}
			}
		}
	})
}
