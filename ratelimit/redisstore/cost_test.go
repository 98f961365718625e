package redisstore

import (
	"context"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/redistest"
	"github.com/chert-http/chert/ratelimit"
)

// What a decision costs, for docs/scale.md: run with -v, and -count for several.
func TestCost(t *testing.T) {
	if os.Getenv("CHERT_RATE_COST") == "" {
		t.Skip("CHERT_RATE_COST is not set")
	}
	srv := redistest.Start(t)
	s := open(t, srv.URL(), Options{})
	l, second := limit(t, "address", "1000000/s", s), limit(t, "hour", "1000000/h", s)
	info := func(section, field string) float64 {
		m := regexp.MustCompile(`(?m)^` + field + `:([0-9.]+)`).FindStringSubmatch(srv.Must("INFO", section))
		f, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	cpu := func() float64 {
		return info("cpu", "used_cpu_user_main_thread") + info("cpu", "used_cpu_sys_main_thread")
	}
	keys := make([]string, 10000)
	for i := range keys {
		keys[i] = "2001:db8:" + strconv.Itoa(i) + "::/64"
	}
	run := func(name string, askers, n int, ask func(i int)) {
		ask(0)
		in, out, used, start := info("stats", "total_net_input_bytes"), info("stats", "total_net_output_bytes"), cpu(), time.Now()
		var all sync.WaitGroup
		for a := range askers {
			all.Go(func() {
				for i := range n / askers {
					ask(a*7919 + i)
				}
			})
		}
		all.Wait()
		took, c := time.Since(start), float64(n)
		t.Logf("%-28s %6.0f /s, %5.1f us each for %d askers, Redis's CPU %4.1f us, %3.0f bytes to Redis and %3.0f back", name,
			c/took.Seconds(), took.Seconds()*1e6*float64(askers)/c, askers, (cpu()-used)*1e6/c,
			(info("stats", "total_net_input_bytes")-in)/c, (info("stats", "total_net_output_bytes")-out)/c)
	}
	ctx := context.Background()
	one := func(i int) { l.Allow(ctx, keys[i%len(keys)], 1) }
	two := func(i int) {
		k := []byte(keys[i%len(keys)])
		s.Take(ctx, []ratelimit.Claim{{Limit: l, Key: k, Cost: 1}, {Limit: second, Key: k, Cost: 1}})
	}
	refusing := limit(t, "refusing", "1/h", s)
	run("one limit, alone", 1, 20000, one)
	run("one limit", 20, 100000, one)
	run("two limits, one script", 20, 100000, two)
	run("refused", 20, 100000, func(i int) { refusing.Allow(ctx, "k", 1) })
	run("nothing but PING", 20, 100000, func(int) { s.client.Ping(ctx) })
	before := info("memory", "used_memory")
	hour := limit(t, "memory", "100/h", s)
	for i := range 20000 {
		hour.Allow(ctx, "198.51.100."+strconv.Itoa(i), 1)
	}
	t.Logf("memory of a key: %.0f bytes", (info("memory", "used_memory")-before)/20000)
}

func BenchmarkRedis(b *testing.B) {
	l := limit(b, "l", "1000000/s", open(b, redistest.Start(b).URL(), Options{}))
	b.ReportAllocs()
	for b.Loop() {
		l.Allow(b.Context(), "192.0.2.1", 1)
	}
}
