package behave

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// The head of a response shares a segment with the beginning of its file
// (docs/adr/0048).
func TestFileSegments(t *testing.T) {
	t.Parallel()
	if engines.Layered {
		t.Skip("a layer has no sendfile")
	}
	const size = 20 << 10 // with the head less than loopback's segments have
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, servertest.Pattern(size), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	whole := direct.File{File: file, Len: size}
	tests := []struct {
		name    string
		handler http.Handler
	}{
		{"direct", direct.HandlerFunc(func(x *direct.Exchange) { x.SendFile(whole) })},
		{"prepared", direct.HandlerFunc(func(x *direct.Exchange) {
			x.Wire().SendFileAs(wire.NewFileResponse(200, http.Header{"Content-Type": {"a/b"}}, size), whole)
		})},
	}
	for _, tt := range tests {
		for _, placement := range []chert.Placement{chert.PlacementInline, chert.PlacementAdaptive} {
			ts := engines.Start(t, &chert.Server{Engine: chert.EngineLoops, Placement: placement, Handler: tt.handler})
			// A machine that stands still between two system calls for 200 ms makes it two segments.
			got := 0
			for range 5 {
				if got = segmentsOf(t, ts, "/"); got == 1 {
					break
				}
			}
			if got != 1 {
				t.Errorf("%s, placement %v: %d segments, want 1", tt.name, placement, got)
			}
		}
	}
}

// segmentsOf returns in how many segments a response came, on a new connection.
func segmentsOf(t *testing.T, ts *engines.Server, path string) int {
	t.Helper()
	c := ts.Dial()
	c.Get(path)
	raw, err := c.TCP().SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	raw.Control(func(fd uintptr) {
		info, failed := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err = failed; err == nil {
			n = int(info.Data_segs_in)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
