package main

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The log and the summary report how much of a download that was cut off was
// sent, how long it took, and what was refused.
func TestLogCut(t *testing.T) {
	needSignals(t)
	dir := folder(t, map[string]string{"f": "12345"})
	if err := os.Truncate(filepath.Join(dir, "f"), 300<<20); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"combined", "json"} {
		p := start(t, dir, "--listen", "127.0.0.1:0", "--log", format)
		u, err := url.Parse(p.urls[0])
		if err != nil {
			t.Fatal(err)
		}
		dial := func(request string, n int64) {
			c, err := net.Dial("tcp", u.Host)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			io.WriteString(c, request)
			if _, err := io.CopyN(io.Discard, c, n); err != nil {
				t.Fatal(err)
			}
			time.Sleep(60 * time.Millisecond) // the slow client's
		}
		dial("GET /f HTTP/1.1\r\nHost: a\r\n\r\n", 29<<20)
		dial("GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 12)
		p.signal(syscall.SIGTERM)
		out, err := io.ReadAll(p.stdout)
		if err != nil {
			t.Fatal(err)
		}
		p.waitFor(exitOK)
		form := `"GET /f HTTP/1\.1" 200 (\d+) `
		refused := `"GET /%zz HTTP/1.1" 400 -`
		if format == "json" {
			form = `"path":"/f","status":200,"bytes":(\d+),"latency":\d+,.*"aborted":true`
			refused = `"msg":"refused","status":400,"reason":"the request target is not a URL","remote":"127.0.0.1","line":"GET /%zz HTTP/1.1"}`
		}
		log, summary := p.stderr.String(), string(out)
		m := regexp.MustCompile(form).FindStringSubmatch(log)
		if m == nil || !strings.Contains(log, refused) {
			t.Fatalf("%s", log)
		}
		if n, _ := strconv.ParseInt(m[1], 10, 64); n < 28<<20 || n > 60<<20 {
			t.Errorf("%d bytes", n)
		}
		m = regexp.MustCompile(`chert: 1 request and (\d+)\.?\d*MiB in \S+; 1 refused\n(?s:.*)slowest: GET "/f" in (\S+)`).FindStringSubmatch(summary)
		if m == nil {
			t.Fatalf("%s", summary)
		}
		if took, err := time.ParseDuration(m[2]); err != nil || took < 60*time.Millisecond {
			t.Errorf("slowest: %v", m[2])
		}
		if n, _ := strconv.Atoi(m[1]); n < 28 || n > 60 {
			t.Error(fmt.Sprint(n, " MiB"))
		}
	}
}
