package static

import (
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/sys"
)

func BenchmarkDirect(b *testing.B) {
	s := newSite(b, pages, nil)
	s.write("1k.txt", text(1024))
	s.write("100k.bin", noise(100<<10))
	s.Handler.now = sys.Nanotime
	for _, tt := range []struct {
		name, path string
	}{
		{"small", "/1k.txt"}, {"index", "/docs/"}, {"large", "/100k.bin"},
	} {
		askPlain(s.Handler, "GET", tt.path)
		b.Run(tt.name, func(b *testing.B) {
			var x direct.Exchange
			r := wire.Request{Method: "GET", Target: []byte(tt.path), Path: []byte(tt.path), Fields: &wireFields{{"User-Agent", []byte("x")}, {"Accept", []byte("*/*")}}}
			b.ReportAllocs()
			for b.Loop() {
				x.Wire().Reset(r)
				if !s.ServeDirect(&x) {
					b.Fatal("left")
				}
				x.Wire().Drop()
			}
		})
	}
}

func BenchmarkMiss(b *testing.B) {
	s := newSite(b, pages, &Options{CacheBytes: 1 << 20})
	s.write("docs/sub/1k.txt", text(1024))
	s.write("docs/sub/32k.txt", text(32<<10))
	for _, name := range []string{"docs/sub/1k.txt", "docs/sub/32k.txt"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e, err := s.load(key{name, 0})
				if err != nil {
					b.Fatal(err)
				}
				e.release()
			}
		})
		b.Run("root/"+name, func(b *testing.B) {
			t, err := openRootTree(s.dir)
			if err != nil {
				b.Fatal(err)
			}
			o := &opened{tree: t}
			o.refs.Store(1)
			src := s.Handler.src
			d := &dirSource{dir: s.dir}
			d.cur.Store(o)
			s.Handler.src = d
			defer func() { s.Handler.src = src; t.close() }()
			b.ReportAllocs()
			for b.Loop() {
				e, err := s.load(key{name, 0})
				if err != nil {
					b.Fatal(err)
				}
				e.release()
			}
		})
	}
}
