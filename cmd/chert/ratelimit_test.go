package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/redistest"
)

func TestRateFlagErrors(t *testing.T) {
	t.Parallel()
	const see = `; see "chert serve --help"`
	const forms = `want redis://[USER:PASSWORD@]HOST:PORT[/DB], rediss:// for TLS, unix:///PATH, redis+cluster:// or redis+sentinel://...?master_name=NAME`
	bad := func(flag, value, why string) string {
		return `chert: invalid argument "` + value + `" for "--` + flag + `" flag: ` + why + see
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--rate-limit", "100/fortnight"}, `chert: invalid argument "100/fortnight" for "--rate-limit" flag: ` +
			`rate "100/fortnight": there is no unit "fortnight"; want s, m, h or d, or a time as in "5/10s"` + see},
		{[]string{"--rate-limit", "1/s", "--rate-store", "localhost"}, "chert: --rate-store: bad URL: no scheme; " + forms + see},
		{[]string{"--rate-limit", "1/s", "--rate-store", "redis://h/x"}, `chert: --rate-store: bad URL: invalid database number: "x"; ` + forms + see},
		// The password is not printed.
		{[]string{"--rate-limit", "1/s", "--rate-store", "redis://:sesame@h/x"}, `chert: --rate-store: bad URL: invalid database number: "x"; ` + forms + see},
		{[]string{"--config", "c.toml", "--rate-store", "redis://:sesame@h/x"}, `chert: --rate-store: bad URL: invalid database number: "x"; ` + forms + see},
		{[]string{"--rate-failure", "ajar"}, bad("rate-failure", "ajar", `want local, open or closed, not "ajar"`)},
		{[]string{"--rate-store", "redis://h"}, "chert: --rate-store has no effect without --rate-limit" + see},
		{[]string{"--rate-limit", "1/s", "--rate-timeout", "1s"}, "chert: --rate-failure, --rate-timeout and --rate-instances require --rate-store" + see},
		{[]string{"--rate-limit", "1/s", "--rate-store", "redis://h", "--rate-timeout", "1us"}, "chert: --rate-timeout wants 1ms at least" + see},
		{[]string{"--rate-limit", "1/s", "--rate-store", "redis://h", "--rate-instances", "0"}, "chert: --rate-instances wants a number from 1 to 1048576" + see},
	} {
		oneLine(t, exitUsage, tt.want, append([]string{"serve"}, tt.args...)...)
	}
	oneLine(t, exitFailure, "chert: the store of the rate limits cannot be used: redis at 127.0.0.1:1 cannot be reached: connect: connection refused",
		"serve", t.TempDir(), "--rate-limit", "1/s", "--rate-store", "redis://127.0.0.1:1")
}

func TestRateStoreErrors(t *testing.T) {
	t.Parallel()
	locked := redistest.Start(t, "--requirepass", "sesame")
	_, port, _ := net.SplitHostPort(locked.Addr)
	replica := redistest.Start(t, "--replicaof", "127.0.0.1 "+port, "--masterauth", "sesame")
	replica.Await("master_link_status:up", "INFO", "replication")
	const begin = "chert: the store of the rate limits cannot be used: redis at "
	for url, why := range map[string]string{
		"redis://:guess@" + locked.Addr: locked.Addr + " refuses the user or password",
		"redis://" + locked.Addr:        locked.Addr + " requires a password",
		replica.URL():                   replica.Addr + " is a read-only replica; want its primary",
	} {
		oneLine(t, exitFailure, begin+why, "serve", t.TempDir(), "--rate-limit", "1/s", "--rate-store", url, "--rate-timeout", "1m")
	}
}

// statuses sends requests on one connection, one after the other.
func statuses(t *testing.T, base string, n int) (counts map[int]int, last *http.Response) {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	counts = make(map[int]int)
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Error(err)
		return counts, nil
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	r := bufio.NewReader(c)
	for range n {
		io.WriteString(c, "GET /f HTTP/1.1\r\nHost: h\r\n\r\n")
		if last, err = http.ReadResponse(r, nil); err != nil {
			t.Error(err)
			return counts, nil
		}
		io.Copy(io.Discard, last.Body)
		counts[last.StatusCode]++
	}
	return counts, last
}

func TestServeRateLimit(t *testing.T) {
	t.Parallel()
	p := start(t, folder(t, map[string]string{"f": "hello"}), "--listen", "127.0.0.1:0", "--rate-limit", "1/h burst 5", "--rate-limit", "1/h burst 8")
	got, last := statuses(t, p.urls[0], 3)
	if got[200] != 3 || last.Header.Get("RateLimit-Policy") != `"address";q=5;w=18000, "address-2";q=8;w=28800` {
		t.Errorf("%v, %v", got, last.Header)
	}
	got, last = statuses(t, p.urls[0], 3)
	if got[200] != 2 || got[429] != 1 || last.Header.Get("Retry-After") != "3600" {
		t.Errorf("%v, %v", got, last.Header)
	}
}

// A reload changes the limits and not what clients have used of those that stay.
func TestReloadRateLimit(t *testing.T) {
	t.Parallel()
	const site = "[[site]]\nhosts = '*'\nroot = 'www'\n"
	p, file := startConfig(t, "[rate_limit]\nlimit = '1/h burst 5'\n"+site, map[string]string{"www/f": "x"})
	want := func(what string, ok, refused int) {
		t.Helper()
		if got, _ := statuses(t, p.urls[0], ok+refused); got[200] != ok || got[429] != refused {
			t.Errorf("%s: %v, want %d of 200 and %d of 429", what, got, ok, refused)
		}
	}
	want("at first", 3, 0)
	p.reload()
	want("the same", 2, 1)
	write(t, file, "[rate_limit]\nlimit = '1/h burst 6'\n"+site)
	p.reload()
	want("another", 6, 1)
	write(t, file, "[rate_limit]\nlimit = '1/h burst 7'\nstore = 'redis://127.0.0.1:1'\n"+site)
	if said := p.refuse(); !strings.Contains(said, "reload: "+file+": the store of the rate limits cannot be used: redis at 127.0.0.1:1 cannot be reached") {
		t.Errorf("said %q", said)
	}
	want("a store that is not there", 0, 1)
	srv := redistest.Start(t)
	write(t, file, "[rate_limit]\nlimit = '1/h burst 7'\nstore = '"+srv.URL()+"'\ntimeout = '1m'\n"+site)
	p.reload()
	want("a store", 7, 1)
	keys := strings.Split(srv.Must("KEYS", "*"), "\n") // in no order
	keys = slices.DeleteFunc(keys, func(key string) bool { return key == "chert:rl:{check}:check" })
	if !slices.Equal(keys, []string{"chert:rl:{127.0.0.1}:address"}) {
		t.Errorf("keys: %q", keys)
	}
	write(t, file, site)
	p.reload()
	want("none", 20, 0)
}

// Four processes share a limit through Redis and admit exactly it.
func TestProcessesShareRateLimit(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	dir := folder(t, map[string]string{"f": "hello"})
	var ps []*proc
	for range 4 {
		ps = append(ps, start(t, dir, "--listen", "127.0.0.1:0", "--rate-limit", "1/h burst 1500", "--rate-store", srv.URL(), "--rate-timeout", "1m"))
	}
	var all sync.WaitGroup
	var admitted, refused, others atomic.Int64
	for i := range 100 {
		all.Go(func() {
			got, _ := statuses(t, ps[i%4].urls[0], 100)
			admitted.Add(int64(got[200]))
			refused.Add(int64(got[429]))
			others.Add(int64(100 - got[200] - got[429]))
		})
	}
	all.Wait()
	if admitted.Load() != 1500 || refused.Load() != 8500 || others.Load() != 0 {
		t.Errorf("%d were admitted, %d refused and %d neither; want 1500 and 8500", admitted.Load(), refused.Load(), others.Load())
	}
	for _, p := range ps {
		p.signal(syscall.SIGTERM)
		p.waitFor(exitOK)
		if len(p.stderr.String()) > 0 {
			t.Errorf("stderr: %s", p.stderr.String())
		}
	}
}

// Redis stops under a running server: each policy does what is documented, stderr
// reports it, and when Redis is back it decides again.
func TestRateStoreDies(t *testing.T) {
	t.Parallel()
	for policy, status := range map[string]int{"open": 200, "closed": 503, "local": 429} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			p := start(t, folder(t, map[string]string{"f": "x"}), "--listen", "127.0.0.1:0", "--rate-limit", "1/h burst 4",
				"--rate-store", srv.URL(), "--rate-failure", policy, "--rate-instances", "2", "--rate-timeout", "5s")
			if got, _ := statuses(t, p.urls[0], 5); got[200] != 4 || got[429] != 1 {
				t.Fatalf("with Redis: %v", got)
			}
			srv.Kill()
			got, last := statuses(t, p.urls[0], 40)
			if want := map[string]int{"open": 40, "closed": 40, "local": 38}[policy]; got[status] != want || policy == "local" && got[200] != 2 {
				t.Errorf("without Redis: %v, want %d of %d", got, want, status)
			}
			if after := last.Header.Get("Retry-After"); (after == "") != (status == 200) {
				t.Errorf("Retry-After %q", after)
			}
			line := `chert: rate limits: Redis fails, ` // and what that means
			until(t, func() bool { return strings.Contains(p.stderr.String(), line) })
			if got := p.stderr.String(); !strings.Contains(got, `error="redis at `+srv.Addr+" ") {
				t.Errorf("logged %q, want the error and the address", got)
			}
			srv.Restart()
			until(t, func() bool {
				got, last := statuses(t, p.urls[0], 1)
				return got[200] == 1 && last.Header.Get("RateLimit") != ""
			})
		})
	}
}
