package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/internal/testing/redistest"
)

// The instances of the demo share a feed, and a page shows all of them.
func TestDemoCluster(t *testing.T) {
	t.Parallel()
	redistest.Need(t)
	needSignals(t)
	admin := freeport.Addr(t)
	p, _ := startDemo(t, "--cluster", "--listen", "127.0.0.1:0", "--log", "off", "--shutdown-timeout", "1s", "--admin", admin)
	t.Cleanup(func() { // it ends its redis-server, which a killed process can on Linux only
		p.signal(syscall.SIGTERM)
		p.wait()
	})
	c := newClient(t, "")
	status, page := get(t, c, p.urls[0]+"cluster")
	var at []string
	for _, m := range regexp.MustCompile(`data-at="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		at = append(at, m[1])
	}
	if status != 200 || len(at) != demoInstances || at[0]+"/" != p.urls[0] {
		t.Fatalf("%d, %q", status, at)
	}
	var feeds []*bufio.Reader
	for _, a := range at {
		res, err := c.Get(a + "/feed")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Error("other instances' pages may not read the feed")
		}
		r := bufio.NewReader(res.Body)
		wantsLine(t, r, "id: ") // it has joined
		feeds = append(feeds, r)
	}
	for _, a := range at {
		res, err := c.Post(a+"/feed", "text/plain", strings.NewReader("from "+a))
		if err != nil || res.StatusCode != http.StatusNoContent {
			t.Fatal(res, err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		for _, r := range feeds {
			wantsLine(t, r, "data: from "+a)
		}
	}
	_, list := get(t, c, "http://"+admin+"/upstreams")
	for i := range demoInstances {
		for _, what := range []string{"topics", "rooms"} {
			if want := fmt.Sprintf("\"%s, instance %d\"", what, i+1); !strings.Contains(list, want) {
				t.Errorf("the admin address does not show %s: %s", want, list)
			}
		}
	}
}

// wantsLine reads until a line begins with text.
func wantsLine(t *testing.T, r *bufio.Reader, text string) {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, text) {
			return
		}
	}
}
