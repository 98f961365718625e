package redisstream

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/redistest"
)

// What may have been written is looked for among the newest entries and those since it was first tried, which are
// few, not in all of a long stream: Redis would do nothing else for seconds, and again and again if that is too long.
func TestAgainInLongStream(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	c := client(t, srv)
	c.o.MaxLen = math.MaxInt32
	s := c.Stream("s", nil)
	srv.Must("EVAL", `for n = 1, ARGV[1] do
		redis.call('XADD', KEYS[1], n .. '-1', 'n', n)
	end`, "1", s.key, "200000") // of 1970
	began := time.Now()
	again := func(token string, want int) {
		t.Helper()
		if err := s.addAgain([]string{"n", "1", tokenField, token}, began); err != nil {
			t.Fatal(err)
		}
		if got := srv.Must("XLEN", s.key); got != fmt.Sprint(want) {
			t.Errorf("%s entries, want %d", got, want)
		}
	}
	if _, err := s.add([]string{"n", "1", tokenField, "one"}); err != nil {
		t.Fatal(err)
	}
	again("one", 200_001)
	burst(srv, s, 0, 2*loadMax) // what others have written meanwhile
	again("one", 200_001+2*loadMax)
	again("two", 200_002+2*loadMax)
	_, memory, _ := strings.Cut(srv.Must("INFO", "memory"), "used_memory_lua:")
	memory, _, _ = strings.Cut(memory, "\r")
	if n, err := strconv.Atoi(memory); err != nil || n > 50<<20 {
		t.Errorf("scripts have taken %d MiB, %v", n>>20, err)
	}
}
