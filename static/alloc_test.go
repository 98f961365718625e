package static

import (
	"iter"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/race"
)

// What is answered from the cache allocates nothing.
func TestAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	s := newSite(t, map[string]string{"a.js": text(5000), "index.html": "i", "big.bin": noise(big), "pre.js": text(5000), "pre.js.br": "br"}, nil)
	for _, tt := range []struct {
		name, method, path string
		fields             map[string]string
		allowed            float64
	}{
		{"small", "GET", "/a.js", nil, 0},
		{"index", "GET", "/", nil, 0},
		{"HEAD", "HEAD", "/a.js", nil, 0},
		{"compressed", "GET", "/a.js", map[string]string{"Accept-Encoding": "gzip, deflate, br, zstd"}, 0},
		{"sibling", "GET", "/pre.js", map[string]string{"Accept-Encoding": "gzip, deflate, br, zstd"}, 0},
		{"304 by tag", "GET", "/a.js", map[string]string{"If-None-Match": "*"}, 0},
		{"304 by time", "GET", "/a.js", map[string]string{"If-Modified-Since": "Fri, 17 May 2024 10:20:30 GMT"}, 3},
		{"304 of a large one", "GET", "/big.bin", map[string]string{"If-None-Match": "*"}, 0},
		{"large", "GET", "/big.bin", nil, 0},
		{"large, HEAD", "HEAD", "/big.bin", nil, 0},
		{"method", "OPTIONS", "/a.js", nil, 0},
	} {
		var lines []string
		f := wireFields{}
		for name, value := range tt.fields {
			lines = append(lines, name+": "+value)
			f = append(f, wireField{name, []byte(value)})
		}
		askPlain(s.Handler, tt.method, tt.path, lines...)
		var x direct.Exchange
		r := wire.Request{Method: tt.method, Target: []byte(tt.path), Path: []byte(tt.path), Fields: &f}
		n := testing.AllocsPerRun(100, func() {
			x.Wire().Reset(r)
			if !s.ServeDirect(&x) {
				t.Errorf("%s: left", tt.name)
			}
			x.Wire().Drop()
		})
		if n > tt.allowed {
			t.Errorf("%s: %v allocations", tt.name, n)
		}
	}
}

// wireFields are fields in an array that is searched, as chert's are.
type wireFields []wireField

type wireField struct {
	name  string
	value []byte
}

func (f *wireFields) Get(name string) []byte {
	for i := range *f {
		if l := &(*f)[i]; l.name == name {
			return l.value
		}
	}
	return nil
}

func (f *wireFields) First(name string) (value []byte, n int) {
	for i := range *f {
		if (*f)[i].name == name {
			n++
		}
	}
	return f.Get(name), n
}

// All allocates its iterator, as any does: only what names a date asks for it.
func (f *wireFields) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for i := range *f {
			if !yield([]byte((*f)[i].name), (*f)[i].value) {
				return
			}
		}
	}
}
