package natstopic

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/door"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/internal/testing/topictest"
	"github.com/nats-io/nats-server/v2/server"
)

const history = 500

// startServer starts a nats-server in this process. port may be 0.
func startServer(t *testing.T, port int, dir string) *server.Server {
	t.Helper()
	if port == 0 {
		port = server.RANDOM_PORT
	}
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir, NoLog: true,
		NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(time.Minute) {
		t.Fatal("nats-server does not start")
	}
	t.Cleanup(func() {
		srv.Shutdown()
		srv.WaitForShutdown()
	})
	return srv
}

func open(t *testing.T, url string, o *Options) *Store {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := Open(url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func setup(t *testing.T) *topictest.Setup {
	dir := t.TempDir()
	srv := startServer(t, 0, dir)
	addr := srv.Addr().String()
	var port int
	fmt.Sscanf(addr[strings.LastIndexByte(addr, ':'):], ":%d", &port)
	d := door.Open(t, addr)
	return &topictest.Setup{
		History:  history,
		CutEvery: 500 * time.Millisecond, // a publisher waits for Timeout after each
		Open: func(t *testing.T, queue int) topictest.Store {
			return open(t, "nats://"+d.Addr, &Options{Queue: queue, History: history, Timeout: time.Second})
		},
		Cut:  d.Cut,
		Away: d.Shut,
		Restart: func(lose bool) {
			srv.Shutdown()
			srv.WaitForShutdown()
			if lose {
				dir = t.TempDir()
			}
			srv = startServer(t, port, dir)
		},
	}
}

func TestSuite(t *testing.T) { topictest.Run(t, setup) }

// NATS fails and responds again: a line for each.
func TestLines(t *testing.T) {
	t.Parallel()
	d := door.Open(t, startServer(t, 0, t.TempDir()).Addr().String())
	var log servertest.Log
	s := open(t, "nats://"+d.Addr, &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.Shut(true)
	servertest.Eventually(t, "NATS to be missed", func() bool { return s.Stats().Away })
	if err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("got %v", err)
	}
	d.Shut(false)
	servertest.Eventually(t, "NATS to be found", func() bool { return !s.Stats().Away })
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "event streams: NATS fails; clients stay") ||
		!strings.Contains(lines[1], "responds again") {
		t.Errorf("%q", lines)
	}
}

// What cannot work is refused when it is opened.
func TestBadOptions(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]*Options{
		"Stream":   {Stream: "a.b"},
		"Replicas": {Replicas: 6},
		"Timeout":  {Timeout: 1},
	} {
		if _, err := Open("nats://127.0.0.1:1", o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	s := open(t, "nats://127.0.0.1:1", &Options{})
	for _, bad := range []string{"", strings.Repeat("x", 513)} {
		if _, err := s.Topic(bad); err == nil {
			t.Errorf("%q is a topic", bad)
		}
	}
	s.Close()
	if _, err := s.Topic("x"); err != ErrClosed {
		t.Errorf("got %v", err)
	}
}
