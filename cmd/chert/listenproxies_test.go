package main

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Each address has its own proxies, on both paths: those that send the PROXY protocol, and those
// whose X-Forwarded-For is trusted. A reload changes them without a new socket.
func TestListenProxies(t *testing.T) {
	t.Parallel()
	needSignals(t)
	const one = "[[listen]]\naddress = '127.0.0.1:0'\n"
	const sites = "[[site]]\nhosts = '*'\nroot = 'www'\nallow = '192.0.2.7'\n[site.errors]\n403 = 'no.txt'\n"
	const header, forwarded = "PROXY TCP4 192.0.2.7 10.0.0.2 1234 443\r\n", "X-Forwarded-For: 192.0.2.7\r\n"
	listen := one + "proxy_protocol = '127.0.0.1'\n" + one + "trusted_proxies = []\n" + one
	dir := folder(t, map[string]string{"www/f": "of www", "no.txt": "no"})
	file := dir + "/chert.toml"
	write(t, file, "trusted_proxies = '127.0.0.1'\n"+listen+sites)
	p := start(t, "--config", file)
	// get returns the status of the second request of a connection, for which the file is in memory;
	// 0 if there is none.
	get := func(i int, header, field string) int {
		t.Helper()
		c := dial(t, p.urls[i])
		defer c.Close()
		r := bufio.NewReader(c)
		status := 0
		for range 2 {
			fmt.Fprintf(c, "%sGET /f HTTP/1.1\r\nHost: a\r\n%s\r\n", header, field)
			header = ""
			res, err := http.ReadResponse(r, nil)
			if err != nil {
				return 0
			}
			res.Body.Close()
			status = res.StatusCode
			if status == http.StatusBadRequest {
				break
			}
		}
		return status
	}
	check := func(want [3][4]int) {
		t.Helper()
		for i, want := range want {
			for j, sent := range [4][2]string{{"", ""}, {header, ""}, {"", forwarded}, {header, forwarded}} {
				if got := get(i, sent[0], sent[1]); got != want[j] {
					t.Errorf("address %d, %q: %d, not %d", i, sent, got, want[j])
				}
			}
		}
	}
	check([3][4]int{{0, 200, 0, 200}, {403, 400, 403, 400}, {403, 400, 200, 400}})
	until(t, func() bool { return strings.Contains(p.stderr.String(), "chert: PROXY protocol error from 127.0.0.1:") })
	if log := p.stderr.String(); strings.Contains(log, "chert: chert: ") {
		t.Errorf("log is %s", log)
	}
	write(t, file, one+one+"proxy_protocol = ['10.0.0.0/8', '127.0.0.1']\n"+one+"trusted_proxies = ['127.0.0.1']\n"+sites)
	urls := p.urls
	p.reload()
	if p.urls = urls; t.Failed() {
		return
	}
	check([3][4]int{{403, 400, 403, 400}, {0, 200, 0, 200}, {403, 400, 200, 400}})
}
