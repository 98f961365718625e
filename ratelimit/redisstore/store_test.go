package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/redistest"
	"github.com/chert-http/chert/ratelimit"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
)

// Every decision is the model's at Redis's time, for any rates, keys and costs,
// several limits at once, and refunds. A refund that comes late keeps what came
// back by itself; the model knows that too.
func TestModel(t *testing.T) {
	t.Parallel()
	srv := server(t)
	var at int64
	s := open(t, srv.URL(), Options{Observe: func(e Event) {
		if !e.Refund {
			at = e.Time.UnixNano()
		}
	}})
	round := 0
	rapid.Check(t, func(t *rapid.T) {
		round++ // keys of its own
		limits := make([]*ratelimit.Limit, rapid.IntRange(1, 3).Draw(t, "limits"))
		for i := range limits {
			r := ratelimit.Rate{
				Count: rapid.Int64Range(1, 1000).Draw(t, "count"),
				Per:   time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(time.Hour)).Draw(t, "per")),
				Burst: rapid.Int64Range(1, 20).Draw(t, "burst"),
			}
			var err error
			if limits[i], err = ratelimit.NewLimit(strconv.Itoa(i), r, s); err != nil {
				t.Fatal(err)
			}
		}
		models := make(map[string]*model)
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			var claims []ratelimit.Claim
			for _, l := range limits[:rapid.IntRange(1, len(limits)).Draw(t, "asked")] {
				key := fmt.Appendf(nil, "%d-%c", round, rapid.IntRange('a', 'b').Draw(t, "key"))
				claims = append(claims, ratelimit.Claim{Limit: l, Key: key, Cost: rapid.Int64Range(0, 12).Draw(t, "cost")})
			}
			if err := s.Take(context.Background(), claims); err != nil {
				t.Fatal(err)
			}
			want := true
			of := func(c *ratelimit.Claim) *model {
				id := c.Limit.Name() + string(c.Key)
				if models[id] == nil {
					models[id] = newModel(c.Limit)
				}
				return models[id]
			}
			for i := range claims {
				m := of(&claims[i])
				m.pass(at)
				trial := *m
				want = trial.take(claims[i].Cost) && want
			}
			if allowed(claims) != want {
				t.Fatalf("got %+v, want %v", claims, want)
			}
			for i := range claims {
				m := of(&claims[i])
				if want {
					m.take(claims[i].Cost)
				}
				if d := claims[i].Decision; (want || !d.Allowed) && (d.Remaining != m.level/m.interval || int64(d.Reset) != m.window-m.level) {
					t.Fatalf("got %+v, want %d left", d, m.level/m.interval)
				}
			}
		}
	})
}

func TestRefund(t *testing.T) {
	t.Parallel()
	srv := server(t)
	s := open(t, srv.URL(), Options{})
	l := limit(t, "l", "1/h burst 10", s)
	take := func(cost int64) []ratelimit.Claim {
		claims := []ratelimit.Claim{{Limit: l, Key: []byte("k"), Cost: cost}}
		if err := s.Take(t.Context(), claims); err != nil {
			t.Fatal(err)
		}
		return claims
	}
	first, second := take(4), take(3)
	for _, tt := range []struct {
		refund []ratelimit.Claim
		left   int64 // less the moments between
	}{{first, 7}, {second, 10}, {second, 10}} {
		if err := s.Refund(t.Context(), tt.refund); err != nil {
			t.Fatal(err)
		}
		if d := take(0)[0].Decision; d.Remaining != tt.left && d.Remaining != tt.left-1 {
			t.Errorf("%d are left, want %d or one less", d.Remaining, tt.left)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	srv := server(t)
	s := open(t, srv.URL(), Options{Prefix: "p:"})
	l := limit(t, "lim", "1/s", s)
	for _, c := range []ratelimit.Claim{
		{Key: []byte("192.0.2.1")},
		{Key: []byte("2001:db8::/64")},
		{Key: []byte("=GET /users/{id}")},
		{Key: []byte("=sesame"), Secret: true},
		{Key: []byte("}{")},
		{Key: []byte("")},
		{Key: []byte("a b\n")},
		{Key: []byte(strings.Repeat("x", 65))},
	} {
		c.Limit, c.Cost = l, 1
		if err := s.Take(t.Context(), []ratelimit.Claim{c}); err != nil || s.client.Exists(t.Context(), s.key(&c)).Val() != 1 {
			t.Errorf("%q: %v", c.Key, err)
		}
	}
	keys := srv.Must("KEYS", "*")
	for _, want := range []string{"p:{192.0.2.1}:lim\n", "p:{2001:db8::/64}:lim\n", "p:{=GET /users/{id}}:lim\n"} {
		if !strings.Contains(keys+"\n", want) {
			t.Errorf("no %q among\n%s", want, keys)
		}
	}
	if n := strings.Count(keys, "p:{#"); n != 5 || strings.Contains(keys, "sesame") {
		t.Errorf("%d keys are hashed, want 5:\n%s", n, keys)
	}
	for key := range strings.Lines(keys) {
		if ms, _ := strconv.Atoi(srv.Must("PTTL", strings.TrimSpace(key))); ms <= 0 || ms > 2000 {
			t.Errorf("%q lives %d ms, want 2000 at most", key, ms)
		}
	}
}

// Redis forgets scripts when it is restarted, or on request.
func TestScriptIsLoadedAgain(t *testing.T) {
	t.Parallel()
	srv := server(t)
	l := limit(t, "l", "1/h burst 3", open(t, srv.URL(), Options{}))
	for i := range 3 {
		if d, err := l.Allow(t.Context(), "k", 1); !d.Allowed || d.Failed || err != nil {
			t.Errorf("%d: %+v, %v", i, d, err)
		}
		srv.Must("SCRIPT", "FLUSH")
	}
	if d, err := l.Allow(t.Context(), "k", 1); d.Allowed || err != nil {
		t.Errorf("a fourth: %+v, %v", d, err)
	}
}

// What the clock of Redis does when it is set back cannot be tried here; what
// the script sees then can: a bucket that is full only after its whole window.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	srv := server(t)
	s := open(t, srv.URL(), Options{})
	l := limit(t, "l", "1/s burst 2", s)
	srv.Must("SET", s.key(&ratelimit.Claim{Limit: l, Key: []byte("k")}), "9999999999 5")
	if d, err := l.Allow(t.Context(), "k", 1); d.Allowed || err != nil || d.RetryAfter > time.Second {
		t.Errorf("%+v, %v: want a token within a second", d, err)
	}
}

// After its clock was set back, Redis refills buckets from then on, not from when they were full by the clock before.
func TestRefillsAfterClockSetBack(t *testing.T) {
	t.Parallel()
	srv := server(t)
	s := open(t, srv.URL(), Options{})
	l := limit(t, "l", "1000/s burst 2", s)
	srv.Must("SET", s.key(&ratelimit.Claim{Limit: l, Key: []byte("k")}), "9999999999 5")
	await(t, "a token", func() bool {
		d, err := l.Allow(t.Context(), "k", 1)
		return d.Allowed && err == nil
	})
}

// A foreign value under the key does not prevent a decision.
func TestStrangeValue(t *testing.T) {
	t.Parallel()
	srv := server(t)
	s := open(t, srv.URL(), Options{})
	l := limit(t, "l", "1/h burst 2", s)
	claims := []ratelimit.Claim{{Limit: l, Key: []byte("k"), Cost: 1}}
	for _, value := range []string{"", "x", "1", "-1 5", "1e9 5"} {
		srv.Must("SET", s.key(&claims[0]), value)
		if err := s.Take(t.Context(), claims); err != nil || claims[0].Decision.Remaining != 1 {
			t.Errorf("%q: %+v, %v", value, claims[0].Decision, err)
		}
		srv.Must("SET", s.key(&claims[0]), value)
		if err := s.Refund(t.Context(), claims); err != nil {
			t.Errorf("%q: %v", value, err)
		}
	}
}

// A slot moves to another node, with its buckets: the client is redirected,
// during the move and after.
func TestSlotMoves(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	s := open(t, "redis+cluster://"+nodes[0].Addr, Options{})
	l := limit(t, "l", "1/h burst 10", s)
	const key = "192.0.2.1"
	left := int64(10)
	ask := func(what string) {
		t.Helper()
		left--
		if d, err := l.Allow(t.Context(), key, 1); err != nil || d.Failed || d.Remaining != left {
			t.Errorf("%s: %+v, %v; want %d left", what, d, err, left)
		}
	}
	ask("at first")
	name := s.key(&ratelimit.Claim{Limit: l, Key: []byte(key)})
	slot := nodes[0].Must("CLUSTER", "KEYSLOT", name)
	from := slices.IndexFunc(nodes, func(n *redistest.Server) bool { return n.Must("CLUSTER", "COUNTKEYSINSLOT", slot) == "1" })
	source, target := nodes[from], nodes[(from+1)%3]
	host, port, _ := strings.Cut(target.Addr, ":")
	sourceID, targetID := source.Must("CLUSTER", "MYID"), target.Must("CLUSTER", "MYID")
	target.Must("CLUSTER", "SETSLOT", slot, "IMPORTING", sourceID)
	source.Must("CLUSTER", "SETSLOT", slot, "MIGRATING", targetID)
	ask("before its key moves")
	source.Must("MIGRATE", host, port, name, "0", "10000")
	ask("while the slot moves")
	target.Must("CLUSTER", "SETSLOT", slot, "NODE", targetID)
	source.Must("CLUSTER", "SETSLOT", slot, "NODE", targetID)
	ask("after")
	ask("and again")
}

func TestHammer(t *testing.T) {
	t.Parallel()
	srv := server(t)
	l := limit(t, "l", "1/h burst 500", open(t, srv.URL(), Options{}))
	var all sync.WaitGroup
	var got atomic.Int64
	for range 16 {
		all.Go(func() {
			for range 200 {
				if d, _ := l.Allow(context.Background(), "k", 1); d.Allowed {
					got.Add(1)
				}
			}
		})
	}
	all.Wait()
	if got.Load() != 500 {
		t.Errorf("%d were admitted, want 500", got.Load())
	}
}

// Three nodes: keys are spread over them; limits of one key are one script, and
// of several keys each is charged or none.
func TestCluster(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	s := open(t, "redis+cluster://"+nodes[0].Addr+"?addr="+nodes[1].Addr, Options{})
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	const keys = 30
	each, twice, all := limit(t, "each", "1/h burst 10", s), limit(t, "twice", "1/h burst 20", s), limit(t, "all", "1/h burst 200", s)
	for _, route := range []string{"=GET /a/{id}", "={}", "}{", "{"} { // one script
		claims := []ratelimit.Claim{{Limit: each, Key: []byte(route), Cost: 1}, {Limit: twice, Key: []byte(route), Cost: 1}}
		if err := s.Take(t.Context(), claims); err != nil || !allowed(claims) {
			t.Errorf("%s: %+v, %v", route, claims, err)
		}
	}
	var wait sync.WaitGroup
	var got [keys]atomic.Int64
	for range 8 {
		wait.Go(func() {
			for i := range keys * 12 {
				key := fmt.Appendf(nil, "198.51.100.%d", i%keys)
				claims := []ratelimit.Claim{{Limit: each, Key: key, Cost: 1}, {Limit: twice, Key: key, Cost: 1}, {Limit: all, Key: []byte("all"), Cost: 1}}
				if err := s.Take(context.Background(), claims); err != nil {
					t.Error(err)
					return
				}
				if allowed(claims) {
					got[i%keys].Add(1)
				}
			}
		})
	}
	wait.Wait()
	sum := int64(0)
	for i := range got {
		n := got[i].Load()
		sum += n
		key := fmt.Sprintf("198.51.100.%d", i)
		d, err := each.Allow(t.Context(), key, 0)
		d2, err2 := twice.Allow(t.Context(), key, 0)
		// A refund lacks the moments between charge and refund.
		if err != nil || err2 != nil || n > 10 || d.Remaining > 10-n || d.Remaining < 9-n || d2.Remaining-d.Remaining != 10 {
			t.Errorf("%s: %d were admitted, and are left: %+v, %+v; %v, %v", key, n, d, d2, err, err2)
		}
	}
	if d, err := all.Allow(t.Context(), "all", 0); err != nil || sum != 200 || d.Remaining != 0 {
		t.Errorf("%d were admitted, want 200; %+v, %v", sum, d, err)
	}
	for i, n := range nodes {
		if size := n.Must("DBSIZE"); size == "0" {
			t.Errorf("node %d has no keys", i)
		}
	}
}

// Claims that are a script each: whichever is refused, the others are not blamed.
func TestOneOfSeveralScriptsRefuses(t *testing.T) {
	t.Parallel()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": server(t).Addr}, ContextTimeoutEnabled: true, MaxRetries: -1})
	defer ring.Close()
	s, err := New(ring, &Options{Timeout: slow})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	few, many := limit(t, "few", "1/h", s), limit(t, "many", "9/h", s)
	few.Allow(t.Context(), "k", 1)
	for at := range 3 {
		claims := make([]ratelimit.Claim, 3)
		for i := range claims {
			claims[i] = ratelimit.Claim{Limit: many, Key: fmt.Append(nil, i), Cost: 1}
		}
		claims[at].Limit, claims[at].Key = few, []byte("k")
		if err := s.Take(t.Context(), claims); err != nil {
			t.Fatal(err)
		}
		for i := range claims {
			if d := claims[i].Decision; d.Allowed != (i != at) || d.Limit != claims[i].Limit.Rate().Burst {
				t.Errorf("%d is refused; %d: %+v", at, i, d)
			}
		}
	}
}

// A sentinel knows where the primary is; when that dies, it promotes the
// replica, and limits continue there without intervention.
func TestSentinel(t *testing.T) {
	t.Parallel()
	primary := server(t)
	_, port, _ := strings.Cut(primary.Addr, ":")
	replica := server(t, "--replicaof", "127.0.0.1 "+port)
	replica.Await("master_link_status:up", "INFO", "replication")
	sentinel := redistest.Sentinel(t, primary)
	sentinel.Await(replica.Addr[len("127.0.0.1:"):], "SENTINEL", "REPLICAS", "main")
	var down atomic.Bool
	s := open(t, "redis+sentinel://"+sentinel.Addr+"/0?master_name=main", Options{
		Timeout: 5 * time.Second, Pause: 100 * time.Millisecond, Failure: FailureClosed,
		Logger: slog.New(says(func(line string) {
			if !down.Load() {
				t.Error(line)
			}
		})),
	})
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := limit(t, "l", "1/h burst 1000", s)
	if d, err := l.Allow(t.Context(), "k", 400); !d.Allowed || err != nil {
		t.Fatalf("%+v, %v", d, err)
	}
	if n := primary.Must("WAIT", "1", "10000"); n != "1" {
		t.Fatal("the replica does not follow")
	}
	down.Store(true)
	primary.Kill()
	await(t, "the replica to take over", func() bool {
		d, err := l.Allow(t.Context(), "k", 1)
		return err == nil && d.Allowed && d.Remaining < 600
	})
}

// New accepts any client that observes deadlines.
func TestNew(t *testing.T) {
	t.Parallel()
	srv := server(t)
	lax := redis.NewClient(&redis.Options{Addr: srv.Addr})
	defer lax.Close()
	if s, err := New(nil, nil); err == nil {
		s.Close()
		t.Error("no client is taken")
	}
	if s, err := New(lax, nil); err == nil || !strings.Contains(err.Error(), "ContextTimeoutEnabled") {
		t.Errorf("got %v, %v", s, err)
	}
	client := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{srv.Addr}, ContextTimeoutEnabled: true})
	defer client.Close()
	s, err := New(client, &Options{Timeout: slow})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := limit(t, "l", "1/h", s).Allow(t.Context(), "k", 1); !d.Allowed || err != nil {
		t.Errorf("%+v, %v", d, err)
	}
	if s.Close(); client.Ping(t.Context()).Err() != nil {
		t.Error("the caller's client is closed")
	}
	for _, o := range []Options{{Prefix: "a{"}, {Prefix: "a b"}, {Timeout: time.Microsecond}, {Failure: 3}, {Instances: -1}} {
		if s, err := New(client, &o); err == nil {
			t.Errorf("%+v: got %v", o, s)
		}
	}
}

// A key that is something else fails by itself: Redis decides about all others.
func TestForeignKey(t *testing.T) {
	t.Parallel()
	srv := server(t)
	s := open(t, srv.URL(), Options{Failures: 1, Pause: time.Hour, Failure: FailureClosed,
		Logger: slog.New(slog.DiscardHandler)})
	l := limit(t, "l", "10/h", s)
	srv.Must("LPUSH", s.key(&ratelimit.Claim{Limit: l, Key: []byte("foreign")}), "x")
	for range 3 {
		if d, err := l.Allow(t.Context(), "foreign", 1); !d.Failed || err == nil || errors.Is(err, ErrNotAsked) {
			t.Errorf("foreign: %+v, %v", d, err)
		}
		if d, err := l.Allow(t.Context(), "other", 1); d.Failed || !d.Allowed || err != nil {
			t.Errorf("other: %+v, %v", d, err)
		}
	}
}
