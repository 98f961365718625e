//go:build linux || darwin

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestUpgradeLong upgrades a server as often as CHERT_UPGRADES says, one time in four to a program that cannot serve,
// under the clients of TestUpgrade, wrk and h2load, and another one with a thousand WebSockets, which connect again when
// they are told to leave.
func TestUpgradeLong(t *testing.T) {
	times, _ := strconv.Atoi(os.Getenv("CHERT_UPGRADES"))
	if times == 0 {
		t.Skip("CHERT_UPGRADES=20 has it run")
	}
	for _, tool := range [][2]string{{"wrk", "wrk"}, {"h2load", "nghttp2-client"}} {
		if _, err := exec.LookPath(tool[0]); err != nil {
			if os.Getenv("CHERT_REQUIRE_ALL") == "1" {
				t.Fatal(err)
			}
			t.Skipf("no %s, of the Debian package %s", tool[0], tool[1])
		}
	}
	u, l := loaded(t)
	demo := startUpgradable(t, "demo", "--listen", "127.0.0.1:0", "--log", "off")
	sockets := watchSockets(t, addrOf(t, demo.urls[0]), 1000)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	wrk := longWrk(ctx, t, u.urls[0]+"f")
	h2 := longH2load(ctx, t, u.urls[2]+"f")
	last, lastDemo, good := 0, 0, 0
	for i := range times {
		if i%4 == 3 {
			u.script("exit 3")
			u.fails("ended before it was ready: exit status 3")
			u.install()
			continue
		}
		last, lastDemo = u.upgrade(), demo.upgrade()
		good++
	}
	stop()
	wrk()
	h2()
	l.end()
	t.Logf("%d of %d upgrades; answers: kept connections %d, a connection for each %d, unix socket %d, TLS %d, HTTP/2 %d",
		good, times, l.count[kept].Load(), l.count[each].Load(), l.count[unixKept].Load(), l.count[overTLS].Load(),
		l.count[http2].Load())
	sockets.end()
	t.Logf("WebSockets: 1000, told to leave and opened again %d times", sockets.again.Load())
	for _, one := range []struct {
		u   *upgradable
		pid int
	}{{u, last}, {demo, lastDemo}} {
		one.u.end(one.pid)
	}
}

// socketCrowd is many WebSockets, each of which is opened again when it is closed with 1001.
type socketCrowd struct {
	stop  atomic.Bool
	wait  sync.WaitGroup
	again atomic.Int64
	conns sync.Map
}

func watchSockets(t *testing.T, addr string, n int) *socketCrowd {
	t.Helper()
	s := &socketCrowd{}
	for range n {
		w := openWebSocket(t, addr)
		s.wait.Go(func() {
			for {
				s.conns.Store(w, nil)
				w.c.SetDeadline(time.Time{})
				if s.stop.Load() {
					w.c.Close()
				}
				code, err := w.readClose()
				s.conns.Delete(w)
				if s.stop.Load() {
					return
				}
				if err == nil && code == 1001 {
					w, err = dialWebSocket(addr)
				}
				if err != nil || code != 1001 {
					t.Errorf("a WebSocket ended with %d, %v", code, err)
					return
				}
				s.again.Add(1)
			}
		})
	}
	return s
}

func (s *socketCrowd) end() {
	s.stop.Store(true)
	s.conns.Range(func(w, _ any) bool {
		w.(*wsClient).c.Close()
		return true
	})
	s.wait.Wait()
}

// longWrk runs wrk until ctx ends. The result waits for it and checks what it says.
func longWrk(ctx context.Context, t *testing.T, url string) (check func()) {
	cmd := exec.CommandContext(ctx, "wrk", "-t1", "-c32", "-d1h", url)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // it then prints its results
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() {
		cmd.Wait()
		text := out.String()
		if !strings.Contains(text, "Requests/sec:") || strings.Contains(text, "Socket errors") || strings.Contains(text, "Non-2xx") {
			t.Errorf("wrk: %s", text)
		}
		t.Logf("wrk: %s", regexp.MustCompile(`\d+ requests in \S+`).FindString(text))
	}
}

// longH2load runs h2load again and again until ctx ends: its connections do not come again after a GOAWAY. The result
// waits for it and checks what it says.
func longH2load(ctx context.Context, t *testing.T, url string) (check func()) {
	counts := regexp.MustCompile(`requests: .* (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout`)
	done := make(chan struct{})
	runs, total := 0, 0
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			out, err := exec.Command("h2load", "-t1", "-c8", "-m8", "-D1", url).CombinedOutput()
			m := counts.FindStringSubmatch(string(out))
			if err != nil || m == nil || m[2] != "0" || m[3] != "0" || m[4] != "0" {
				t.Errorf("h2load: %v %s", err, out)
				return
			}
			n, _ := strconv.Atoi(m[1])
			total += n
			runs++
		}
	}()
	return func() {
		<-done
		t.Logf("h2load: %d requests in %d runs", total, runs)
	}
}
