package static_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/chert-http/chert/static"
)

// sparse makes a file of 10 GiB that takes no room.
func sparse(t *testing.T) (dir string) {
	dir = t.TempDir()
	f, err := os.Create(dir + "/huge.bin")
	if err == nil {
		err = f.Truncate(hugeSize)
		f.Close()
	}
	if err != nil {
		t.Skip(err)
	}
	return dir
}

const hugeSize = 10 << 30

// resident is the process's memory, in bytes: all of it, and Go's heap.
func resident(t *testing.T) (rss, heap int64) {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip(err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(b), &size, &pages); err != nil {
		t.Fatal(err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return pages * int64(os.Getpagesize()), int64(m.HeapAlloc)
}

// A huge file is sent with flat memory: its length is known, and its end is had
// as a range.
func TestHugeFile(t *testing.T) {
	if !inChild(t) { // whose memory no other test uses
		return
	}
	dir := sparse(t)
	part := int64(1 << 28)
	if testing.Short() {
		part = 64 << 20
	}
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			c := newClient(t, w.serve(t, serveDir(t, dir, nil)))
			if a := c.ask("HEAD", "/huge.bin"); a.status != 200 || a.length != hugeSize || a.field("Accept-Ranges") != "bytes" {
				t.Fatal(a)
			}
			rss, heap := resident(t)
			io.WriteString(c.c, head("GET", "/huge.bin", fmt.Sprintf("Range: bytes=%d-", hugeSize-part)))
			res, err := http.ReadResponse(c.r, nil)
			if err != nil || res.StatusCode != 206 || res.ContentLength != part || res.Header.Get("Content-Range") != fmt.Sprintf("bytes %d-%d/%d", hugeSize-part, int64(hugeSize)-1, int64(hugeSize)) {
				t.Fatal(res, err)
			}
			buf := make([]byte, 1<<20)
			var got int64
			for next := part / 8; ; {
				n, err := res.Body.Read(buf)
				got += int64(n)
				if got >= next {
					next += part / 8
					if nowRSS, nowHeap := resident(t); nowRSS-rss > 64<<20 || nowHeap-heap > 32<<20 {
						t.Fatalf("after %d bytes: %d bytes more in the process, %d in the heap", got, nowRSS-rss, nowHeap-heap)
					}
				}
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if got != part {
				t.Errorf("%d bytes", got)
			}
		})
	}
}

// Slow readers of a huge file hold no goroutines on an event loop, and others are
// served meanwhile.
func TestSlowReaders(t *testing.T) {
	if !inChild(t) {
		return
	}
	dir := sparse(t)
	makeTree(t, dir, map[string]string{"small.txt": "small"})
	const readers = 200
	for _, w := range ways() {
		// Others may run the handler on a goroutine, adaptive if it has seen it
		// take long; what answers there waits there.
		if w.name != "inline" {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			addr := w.serve(t, serveDir(t, dir, &static.Options{}))
			c := newClient(t, addr)
			c.ask("HEAD", "/huge.bin")
			before := runtime.NumGoroutine()
			var all []net.Conn
			defer func() {
				for _, nc := range all {
					nc.Close()
				}
			}()
			for range readers {
				nc, err := net.Dial("tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, nc)
				nc.(*net.TCPConn).SetReadBuffer(16 << 10)
				io.WriteString(nc, head("GET", "/huge.bin"))
			}
			begin := make([]byte, 100)
			for _, nc := range all {
				if _, err := io.ReadFull(nc, begin); err != nil || !strings.HasPrefix(string(begin), "HTTP/1.1 200 ") {
					t.Fatalf("%q, %v", begin, err)
				}
			}
			eventually(t, "no goroutine waits for them", func() bool { return runtime.NumGoroutine() < before+20 })
			for range 100 {
				if a := c.ask("GET", "/small.txt"); a.body != "small" {
					t.Fatal(a)
				}
			}
			// They still get what they ask for.
			for _, nc := range all[:5] {
				if _, err := io.CopyN(io.Discard, nc, 128<<10); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
