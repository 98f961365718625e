package http1

import (
	"os"
	"syscall"
	"testing"
)

// atPageEnd copies b to the end of a page that has an unreadable one after it,
// so that reading past b crashes.
func atPageEnd(t *testing.T, pages []byte, b []byte) []byte {
	t.Helper()
	end := len(pages) - os.Getpagesize()
	return pages[end-copy(pages[end-len(b):end], b) : end : end]
}

func TestNoOverread(t *testing.T) {
	page := os.Getpagesize()
	pages, err := syscall.Mmap(-1, 0, 2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(pages)
	if err := syscall.Mprotect(pages[page:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	var r Request
	for _, s := range []string{
		browserGET,
		"\r\nCONNECT [::1%25a]:80 HTTP/1.1\r\nHost: [::1%25a]:80\r\nA:\t \r\n\r\n",
		"PUT http://a%2f HTTP/1.1\r\nHost: a%2f\r\nTransfer-Encoding: ,chunked\r\nTrailer: a,b\r\nExpect:\r\n\r\n",
		"GET / HTTP/2.0\r\n",
		"GET / HTTP/1.1\r\nA : b\r\n",
	} {
		for i := range len(s) + 1 {
			b := atPageEnd(t, pages, []byte(s[:i]))
			var p Progress
			r.Parse(b, &p, nil)
			r.Parse(b, &p, nil) // and what Progress leaves to look at
			p = Progress{}
			ParseTrailer(b, nil, &p, nil)
			ParseTrailer(b, nil, &p, nil)
			LookupField(b)
			HasToken(b, "close")
			CanonicalName(b, FieldUnknown)
		}
	}
	var resp Response
	for _, s := range append(responseSeeds, appResponse, "HTTP/1.1 200\r\n", "HTTP/1.1 2") {
		for i := range len(s) + 1 {
			b := atPageEnd(t, pages, []byte(s[:i]))
			var p Progress
			resp.Parse(b, &Expected{Upgrade: b}, &p, nil)
			resp.Parse(b, &Expected{}, &p, nil)
		}
	}
	for _, s := range []string{"5;a=\"\\b\" ; c = d\r\nhello\r\n0\r\n", "7fffffffffffffff\r\nx", "g"} {
		for i := range len(s) + 1 {
			for j := range i + 1 {
				var c Chunked
				for _, part := range []string{s[:j], s[j:i]} {
					b := atPageEnd(t, pages, []byte(part))
					c.Decode(b, b)
				}
			}
		}
	}
}
