package redisstore

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/internal/testing/redistest"
	"github.com/chert-http/chert/ratelimit"
	"github.com/redis/go-redis/v9"
)

// busy is by how much a decision may exceed its Timeout on a busy machine,
// where a goroutine that is woken does not run at once. It is less than the 5 s
// that the client waits without a deadline; TestDeadline checks those.
const busy = 4 * time.Second

// Redis dies under load and comes back: each policy decides as documented, no
// request waits longer than Timeout, and Redis is asked again without a
// restart.
func TestRedisDies(t *testing.T) {
	t.Parallel()
	for _, policy := range []Failure{FailureLocal, FailureOpen, FailureClosed} {
		t.Run(policy.String(), func(t *testing.T) {
			t.Parallel()
			srv := server(t)
			var mu sync.Mutex
			var lines []string
			const timeout = 250 * time.Millisecond
			begin := time.Now()
			s := open(t, srv.URL(), Options{
				Timeout: timeout, Failure: policy, Instances: 4, Pause: 100 * time.Millisecond,
				Logger: slog.New(says(func(line string) {
					mu.Lock()
					defer mu.Unlock()
					lines = append(lines, line)
				})),
			})
			l := limit(t, "l", "1/h burst 100", s)
			ld := startLoad(l, 16)
			// Not all 100: on a busy machine a reply may come too late, and its token is lost.
			await(t, "tokens", func() bool { return ld.admitted.Load() >= 50 })
			srv.Kill()
			await(t, "500 decisions without Redis", func() bool { return ld.failed.Load() >= 500 })
			srv.Restart()
			await(t, "Redis to be asked again", func() bool { return ld.inRow.Load() > 300 })
			srv.Kill() // and once more
			before := ld.failed.Load()
			await(t, "500 decisions without Redis", func() bool { return ld.failed.Load() >= before+500 })
			srv.Restart()
			await(t, "Redis to be asked again", func() bool { return ld.inRow.Load() > 300 })
			ld.end()

			failed, yes := ld.failed.Load(), ld.failedYes.Load()
			want := map[Failure]int64{FailureOpen: failed, FailureClosed: 0, FailureLocal: 25}[policy] // a share of 4
			if yes != want {
				t.Errorf("%d of %d were admitted without Redis, want %d", yes, failed, want)
			}
			// Killed Redis forgets: a full bucket each time.
			if n := ld.admitted.Load() - yes; n > 300 || n < 50 {
				t.Errorf("%d were admitted by Redis, want 50 to 300", n)
			}
			longest := time.Duration(ld.longest.Load())
			t.Logf("%d decisions, %d without Redis, the longest took %v", ld.asked.Load(), failed, longest)
			if longest > timeout+busy {
				t.Errorf("a decision took %v, Timeout is %v", longest, timeout)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, line := range lines {
				if strings.Contains(line, "\n") || !strings.Contains(line, srv.Addr) {
					t.Errorf("a line says %q", line)
				}
			}
			// Not the times between them: the goroutine with the turn may be
			// delayed before it reports its line.
			if took := time.Since(begin); len(lines) > 1+int(took/time.Second) {
				t.Errorf("%d lines in %v: %q", len(lines), took, lines)
			}
			if len(lines) == 0 || !strings.HasPrefix(lines[0], "ERROR rate limits: Redis fails, ") {
				t.Errorf("said: %q", lines)
			}
		})
	}
}

// Redis hangs: it accepts what it is sent and does not respond.
func TestRedisHangs(t *testing.T) {
	t.Parallel()
	srv := server(t, "--enable-debug-command", "yes")
	const timeout = 100 * time.Millisecond
	s := open(t, srv.URL(), Options{Timeout: timeout, Failure: FailureOpen, Pause: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	ld := startLoad(limit(t, "l", "1/d", s), 16)
	await(t, "answers", func() bool { return ld.inRow.Load() > 50 })
	woke := make(chan error, 1)
	go func() { _, err := srv.Do("DEBUG", "SLEEP", "1"); woke <- err }()
	await(t, "decisions without Redis", func() bool { return ld.failed.Load() >= 200 })
	if err := <-woke; err != nil {
		t.Error(err)
	}
	await(t, "Redis to be asked again", func() bool { return ld.inRow.Load() > 50 })
	ld.end()
	longest := time.Duration(ld.longest.Load())
	t.Logf("the longest of %d decisions took %v", ld.asked.Load(), longest)
	if longest > timeout+busy {
		t.Errorf("a decision took %v, Timeout is %v", longest, timeout)
	}
}

// A black hole: packets are sent and none come back. Here it is a listener that
// does not accept: connections are made, and no response comes.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const timeout = 50 * time.Millisecond
	s := open(t, "redis://"+l.Addr().String(), Options{Timeout: timeout, Failure: FailureClosed, Logger: slog.New(slog.DiscardHandler)})
	lim := limit(t, "l", "1/s", s)
	begin := time.Now()
	d, err := lim.Allow(context.Background(), "k", 1)
	took := time.Since(begin)
	if d.Allowed || !d.Failed || d.RetryAfter <= 0 || err == nil || took > timeout+busy {
		t.Errorf("%+v, %v after %v", d, err, took)
	}
	if err := s.explain(err); !strings.Contains(err.Error(), "does not respond within 50ms") {
		t.Errorf("explained as %q", err)
	}
	// Check waits longer than Timeout, and does not say that it has not.
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := s.Check(ctx); err == nil || !strings.Contains(err.Error(), "does not respond in time") {
		t.Errorf("Check: %v", err)
	}
}

// A client that disconnects does not cost a connection to Redis.
func TestCanceledRequest(t *testing.T) {
	t.Parallel()
	srv := server(t)
	l := limit(t, "l", "1/h burst 2", open(t, srv.URL(), Options{}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d, err := l.Allow(ctx, "k", 1); !d.Allowed || d.Failed || err != nil {
		t.Errorf("%+v, %v", d, err)
	}
}

// What is wrong with a store is one line that names it, at the start and later.
func TestCheck(t *testing.T) {
	t.Parallel()
	redistest.Need(t)
	locked := server(t, "--requirepass", "sesame")
	plain := server(t)
	_, port, _ := strings.Cut(plain.Addr, ":")
	replica := server(t, "--replicaof", "127.0.0.1 "+port)
	replica.Await("master_link_status:up", "INFO", "replication")
	locked.Must("ACL", "SETUSER", "reader", "on", ">x", "~*", "+@read", "+ping", "+hello", "+select")
	node := server(t, "--cluster-enabled", "yes", "--cluster-port", freeport.Port(t))
	for _, tt := range []struct{ name, url, want string }{
		{"right", locked.URL(), ""},
		{"without password", plain.URL(), ""},
		{"wrong password", "redis://:guess@" + locked.Addr, "redis at " + locked.Addr + " refuses the user or password"},
		{"wrong user", "redis://nobody:sesame@" + locked.Addr, "redis at " + locked.Addr + " refuses the user or password"},
		{"no password", "redis://" + locked.Addr, "redis at " + locked.Addr + " requires a password"},
		{"read-only replica", replica.URL(), "redis at " + replica.Addr + " is a read-only replica; want its primary"},
		{"no rights", "redis://reader:x@" + locked.Addr, "redis at " + locked.Addr + " does not let this user do that"},
		{"no server there", "redis://127.0.0.1:1", "redis at 127.0.0.1:1 cannot be reached: connect: connection refused"},
		{"no such socket", "unix:///nonexistent/redis.sock", "redis at /nonexistent/redis.sock cannot be reached: connect: no such file or directory"},
		{"no cluster", "redis+cluster://" + plain.Addr, "redis at " + plain.Addr + " is not a cluster; want redis://"},
		{"not whole", node.URL(), "redis at " + node.Addr + " is a cluster that is not complete"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := open(t, tt.url, Options{Logger: slog.New(slog.DiscardHandler)}).Check(t.Context())
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "guess") {
				t.Errorf("got %q, want %q", err, tt.want)
			}
		})
	}
}

// A primary that becomes a replica later is reported as at the start.
func TestBecomesReplica(t *testing.T) {
	t.Parallel()
	srv, other := server(t), server(t)
	lines := make(chan string, 100)
	s := open(t, srv.URL(), Options{Logger: slog.New(says(func(line string) { lines <- line }))})
	l := limit(t, "l", "1/h burst 5", s)
	l.Allow(t.Context(), "k", 1)
	_, port, _ := strings.Cut(other.Addr, ":")
	srv.Must("REPLICAOF", "127.0.0.1", port)
	d, err := l.Allow(t.Context(), "k", 1)
	if !d.Failed || err == nil {
		t.Errorf("%+v, %v", d, err)
	}
	select {
	case line := <-lines:
		if want := "ERROR rate limits: Redis fails, each process limits by itself error=redis at " + srv.Addr + " is a read-only replica; want its primary"; line != want {
			t.Errorf("said %q, want %q", line, want)
		}
	default:
		t.Error("nothing was said")
	}
}

func TestOpenURL(t *testing.T) {
	t.Parallel()
	for _, good := range []string{
		"redis://127.0.0.1:6379/0", "rediss://u:p@h:1/2", "unix:///run/redis.sock?db=1", "redis+cluster://a:1?addr=b:2",
		"rediss+cluster://u:p@a:1", "redis+sentinel://a:1/0?master_name=m&addr=b:2",
	} {
		s, err := OpenURL(good, nil)
		if err != nil {
			t.Errorf("%s: %v", good, err)
			continue
		}
		s.Close()
	}
	for _, bad := range []string{
		"", "127.0.0.1:6379", "http://h", "redis://:sesame@h:x", "redis://:sesame@h/x", "redis+foo://h", "redis+sentinel://:sesame@h:1",
		"://", "redis://:sesame@h:1/0?timeout=5", "redis://:ses%ame@h:1",
		"redis://:sesame/x@h:1", "redis://:1/sesame@h:1/0", "redis://:1?sesame@h:1/0", "redis+sentinel://:1#sesame@h:1",
	} {
		s, err := OpenURL(bad, nil)
		if err == nil {
			t.Errorf("%s: taken as %v", bad, s.where)
			continue
		}
		if text := err.Error(); strings.Contains(text, "\n") || strings.Contains(text, "sesame") || !strings.Contains(text, "want redis://") {
			t.Errorf("%s: %s", bad, text)
		}
	}
}

// With sentinels only their addresses can be named.
func TestSentinelsAreNamed(t *testing.T) {
	t.Parallel()
	err := open(t, "redis+sentinel://:sesame@127.0.0.1:1/0?master_name=main", Options{}).Check(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "redis at the primary that 127.0.0.1:1 knows ") || strings.Contains(err.Error(), "sesame") {
		t.Errorf("got %v", err)
	}
}

func TestParseFailure(t *testing.T) {
	t.Parallel()
	for _, f := range []Failure{FailureLocal, FailureOpen, FailureClosed} {
		if got, err := ParseFailure(f.String()); got != f || err != nil {
			t.Errorf("%v: got %v, %v", f, got, err)
		}
	}
	if _, err := ParseFailure("ajar"); err == nil || !strings.Contains(err.Error(), "want local, open or closed") {
		t.Errorf("got %v", err)
	}
}

// Negative: Redis is asked each time, however often it has failed.
func TestNoPause(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{Failures: -1}, {Pause: -1}} {
		o.Failure, o.Logger = FailureClosed, slog.New(slog.DiscardHandler)
		lim := limit(t, "l", "1/s", open(t, "redis://"+freeport.Addr(t), o))
		for range 20 {
			d, err := lim.Allow(t.Context(), "k", 1)
			if errors.Is(err, ErrNotAsked) || err == nil || d.Allowed || d.RetryAfter != time.Second {
				t.Errorf("%d, %v: %+v, %v", o.Failures, o.Pause, d, err)
			}
		}
	}
}

// Negative: a decision waits for as long as the client does.
func TestNoTimeout(t *testing.T) {
	t.Parallel()
	srv := server(t, "--enable-debug-command", "yes")
	lim := limit(t, "l", "1/h burst 2", open(t, srv.URL(), Options{Timeout: -1}))
	slept := make(chan error, 1)
	go func() { _, err := srv.Do("DEBUG", "SLEEP", "0.5"); slept <- err }() // beyond the default
	for asleep := true; asleep; {
		if d, err := lim.Allow(t.Context(), "k", 0); d.Failed || err != nil {
			t.Fatalf("%+v, %v", d, err)
		}
		select {
		case err := <-slept:
			if asleep = false; err != nil {
				t.Error(err)
			}
		default:
		}
	}
}

// Without Redis what costs more than a process's part of the bucket takes that part; what costs
// more than the bucket is never admitted.
func TestCostBeyondShare(t *testing.T) {
	t.Parallel()
	now := time.Second
	memory := ratelimit.NewMemory(&ratelimit.MemoryOptions{Clock: func() time.Duration { return now }})
	s := open(t, "redis://127.0.0.1:1", Options{Instances: 4, Memory: memory, Logger: slog.New(slog.DiscardHandler)})
	l := limit(t, "l", "100/s burst 16", s) // a part is 4 tokens, one each 40 ms
	for _, tt := range []struct {
		cost int64
		want time.Duration // to wait; 0: admitted
	}{{5, 0}, {1, 40 * time.Millisecond}, {5, 160 * time.Millisecond}, {17, ratelimit.Never}} {
		claims := []ratelimit.Claim{{Limit: l, Key: []byte("k"), Cost: tt.cost}}
		if err := s.Take(t.Context(), claims); err == nil || claims[0].Decision.RetryAfter != tt.want || claims[0].Decision.Allowed != (tt.want == 0) {
			t.Errorf("cost %d: %+v, %v", tt.cost, claims[0].Decision, err)
		}
	}
	now += 160 * time.Millisecond
	for range 2 { // what is given back is what was taken
		claims := []ratelimit.Claim{{Limit: l, Key: []byte("k"), Cost: 16}}
		s.Take(t.Context(), claims)
		if d := claims[0].Decision; !d.Allowed || d.Remaining != 0 {
			t.Errorf("%+v", d)
		}
		if err := s.Refund(t.Context(), claims); err != nil {
			t.Error(err)
		}
	}
}

// A Store does not keep limits for which Redis has failed.
func TestForgetsLimits(t *testing.T) {
	t.Parallel()
	s := open(t, "redis://127.0.0.1:1", Options{Logger: slog.New(slog.DiscardHandler)})
	l := limit(t, "l", "1/s", s)
	if d, _ := l.Allow(t.Context(), "k", 1); !d.Failed {
		t.Errorf("%+v", d)
	}
	kept := weak.Make(l)
	await(t, "the limit to be freed", func() bool {
		runtime.GC()
		return kept.Value() == nil
	})
	runtime.KeepAlive(s)
}

// After Close no Redis is asked, also with a client that goes on.
func TestCloseOfForeignClient(t *testing.T) {
	t.Parallel()
	c := redis.NewClient(&redis.Options{Addr: server(t).Addr, ContextTimeoutEnabled: true, MaxRetries: -1})
	defer c.Close()
	s, err := New(c, &Options{Timeout: slow, Failure: FailureClosed, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	l := limit(t, "l", "10/h", s)
	if d, err := l.Allow(t.Context(), "k", 1); !d.Allowed || err != nil {
		t.Errorf("%+v, %v", d, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if d, err := l.Allow(t.Context(), "k", 1); d.Allowed || !d.Failed || !errors.Is(err, redis.ErrClosed) {
		t.Errorf("after Close: %+v, %v", d, err)
	}
}
