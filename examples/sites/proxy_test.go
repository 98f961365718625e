package sites

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// startBoth serves a configuration by chert, and by nginx if that is installed.
func startBoth(t *testing.T, name string) map[string]*server {
	t.Helper()
	all := map[string]*server{"chert": startChert(t, name)}
	if nginx := startNginx(t, name); nginx != nil {
		all["nginx"] = nginx
	}
	return all
}

// A connection becomes a tunnel when the application says so, also with what was sent before its answer.
func TestWebSocketExample(t *testing.T) {
	t.Parallel()
	for who, s := range startBoth(t, "websocket") {
		c, err := net.Dial("tcp", s.plain)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, "GET /ws/ HTTP/1.1\r\nHost: chat.example.com\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		r := bufio.NewReader(c)
		res, err := http.ReadResponse(r, nil)
		if err != nil || res.StatusCode != http.StatusSwitchingProtocols || res.Header.Get("Upgrade") != "echo" {
			t.Errorf("%s: %v %v", who, res, err)
			continue
		}
		for _, line := range []string{"one\n", strings.Repeat("x", 100_000) + "\n"} {
			go io.WriteString(c, line)
			if got, err := r.ReadString('\n'); got != line {
				t.Errorf("%s: %d bytes of %d, %v", who, len(got), len(line), err)
			}
		}
	}
}

// A session stays at its server, and both have some.
func TestHashExample(t *testing.T) {
	t.Parallel()
	for who, s := range startBoth(t, "hash") {
		seen := make(map[string]int)
		for i := range 40 {
			r := request{host: "example.com", target: "/", fields: []string{fmt.Sprintf("Cookie: session=s%d", i)}}
			name, _, _ := strings.Cut(r.send(t, s).body, ":")
			seen[name]++
			if again, _, _ := strings.Cut(r.send(t, s).body, ":"); again != name {
				t.Errorf("%s: session %d: %q, then %q", who, i, name, again)
			}
		}
		if len(seen) != 2 || seen["first"] < 5 || seen["second"] < 5 {
			t.Errorf("%s: %v", who, seen)
		}
	}
}
