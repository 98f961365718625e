package ranges

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestContentRange(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		r    Range
		size int64
		want string
	}{
		{Range{0, 1}, 1, "bytes 0-0/1"},
		{Range{42, 1192}, 1234, "bytes 42-1233/1234"},
		{Range{0, math.MaxInt64}, math.MaxInt64, "bytes 0-9223372036854775806/9223372036854775807"},
		{Range{math.MaxInt64 - 1, 1}, math.MaxInt64, "bytes 9223372036854775806-9223372036854775806/9223372036854775807"},
	} {
		if got := tt.r.ContentRange(tt.size); got != tt.want {
			t.Errorf("%v of %d: %q, want %q", tt.r, tt.size, got, tt.want)
		}
	}
	if got := Unsatisfied(1234); got != "bytes */1234" {
		t.Error(got)
	}
}

var sink string

// body is the whole multipart body over content.
func (m *Multipart) body(content []byte) []byte {
	var b []byte
	for i, r := range m.Ranges {
		b = m.AppendHead(b, i)
		b = append(b, content[r.Start:r.Start+r.Length]...)
	}
	return m.AppendTail(b)
}

func TestMultipart(t *testing.T) {
	t.Parallel()
	content := []byte(strings.Repeat("0123456789", 100))
	for _, tt := range []struct {
		why, contentType, want string
		ranges                 []Range
	}{
		{"two parts", "text/plain; charset=utf-8", "text/plain; charset=utf-8", []Range{{0, 10}, {995, 5}}},
		{"out of order", "text/plain", "text/plain", []Range{{500, 1}, {0, 499}, {999, 1}}},
		{"no type", "", "", []Range{{0, 1}, {2, 1}}},
		{"a type that would be a field", "a/b\r\nX: y", "a/b  X: y", []Range{{0, 1}, {2, 1}}},
		{"a type of bytes", "a/\x00\x7f\xff\t", "a/  \xff", []Range{{0, 1}, {2, 1}}},
		{"64 parts", "a/b", "a/b", fromTo(64)},
	} {
		t.Run(tt.why, func(t *testing.T) {
			t.Parallel()
			m := &Multipart{Boundary: NewBoundary(), ContentType: tt.contentType, Ranges: tt.ranges, Size: int64(len(content))}
			body := m.body(content)
			if m.Len() != int64(len(body)) {
				t.Errorf("Len is %d, the body has %d bytes", m.Len(), len(body))
			}
			media, params, err := mime.ParseMediaType(m.Type())
			if err != nil || media != "multipart/byteranges" || params["boundary"] != m.Boundary {
				t.Fatalf("%q: %q %v %v", m.Type(), media, params, err)
			}
			r := multipart.NewReader(bytes.NewReader(body), m.Boundary)
			for i, want := range tt.ranges {
				p, err := r.NextRawPart()
				if err != nil {
					t.Fatalf("part %d: %v", i, err)
				}
				fields := 2
				if tt.contentType == "" {
					fields = 1
				}
				if got := p.Header.Get("Content-Range"); got != want.ContentRange(1000) || len(p.Header) != fields {
					t.Errorf("part %d: Content-Range %q, fields %v", i, got, p.Header)
				}
				if got := p.Header.Get("Content-Type"); got != tt.want {
					t.Errorf("part %d: Content-Type %q, want %q", i, got, tt.want)
				}
				got, err := io.ReadAll(p)
				if err != nil || !bytes.Equal(got, content[want.Start:want.Start+want.Length]) {
					t.Errorf("part %d: %q, %v", i, got, err)
				}
			}
			if p, err := r.NextRawPart(); err != io.EOF {
				t.Errorf("after the last part: %v, %v", p, err)
			}
		})
	}
}

func fromTo(n int) (rs []Range) {
	for i := range n {
		rs = append(rs, Range{int64(2 * i), 1})
	}
	return rs
}

// TestMultipartAlike: what clients know from net/http, but for the order of
// fields within a part.
func TestMultipartAlike(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789", 100)
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Range", "bytes=0-9,100-119,-1")
	w := httptest.NewRecorder()
	http.ServeContent(w, r, "x.txt", time.Time{}, strings.NewReader(content))
	_, params, err := mime.ParseMediaType(w.Header().Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	rs, _ := Parse(nil, []byte("bytes=0-9,100-119,-1"), 1000)
	m := &Multipart{Boundary: params["boundary"], ContentType: "text/plain; charset=utf-8", Ranges: rs, Size: 1000}
	got := string(m.body([]byte(content)))
	for _, r := range rs {
		typ, rng := "Content-Type: text/plain; charset=utf-8\r\n", "Content-Range: "+r.ContentRange(1000)+"\r\n"
		got = strings.Replace(got, typ+rng, rng+typ, 1)
	}
	if want := w.Body.String(); got != want {
		t.Errorf("%q\nServeContent:\n%q", got, want)
	}
	if want := w.Header().Get("Content-Length"); fmt.Sprint(m.Len()) != want {
		t.Errorf("Len is %d, ServeContent's %s", m.Len(), want)
	}
}

func TestBoundary(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 100 {
		b := NewBoundary()
		// RFC 2046 section 5.1.1: at most 70 characters; these need no quotes.
		if len(b) < 22 || len(b) > 70 || strings.Trim(b, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") != "" {
			t.Errorf("%q", b)
		}
		if seen[b] {
			t.Errorf("%q twice", b)
		}
		seen[b] = true
	}
}

func TestMultipartAllocations(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { sink = Range{100, 200}.ContentRange(1 << 40) }); n > 1 {
		t.Errorf("ContentRange allocates %v times, want the string only", n)
	}
	m := &Multipart{Boundary: NewBoundary(), ContentType: "video/mp4", Ranges: fromTo(64), Size: 1 << 40}
	b := make([]byte, 0, 512)
	if n := testing.AllocsPerRun(100, func() {
		m.AppendHead(b, 5)
		m.AppendTail(b)
	}); n != 0 {
		t.Errorf("a part's head and the tail allocate %v times", n)
	}
}

func BenchmarkMultipartLen(b *testing.B) {
	m := &Multipart{Boundary: NewBoundary(), ContentType: "video/mp4", Ranges: fromTo(64), Size: 1 << 40}
	b.ReportAllocs()
	for b.Loop() {
		m.Len()
	}
}
