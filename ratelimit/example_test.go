package ratelimit_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/chert-http/chert/ratelimit"
)

// An address may send one request a minute, and two at once; all together 1000 a
// second.
func Example() {
	rate, err := ratelimit.ParseRate("1/m burst 2")
	if err != nil {
		log.Fatal(err)
	}
	limit, err := ratelimit.New(&ratelimit.Options{
		Rules: []ratelimit.Rule{
			{Name: "address", Rate: rate},
			{Name: "all", Rate: ratelimit.Rate{Count: 1000, Per: time.Second}, Key: ratelimit.Everyone()},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	h := limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {}))
	for range 3 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Println(w.Code, w.Header().Get("RateLimit"))
	}
	// Output:
	// 200 "address";r=1;t=60
	// 200 "address";r=0;t=120
	// 429 "address";r=0;t=120
}

// Without HTTP: three attempts to log in, and one more every ten minutes.
func ExampleLimit() {
	logins, err := ratelimit.NewLimit("login", ratelimit.Rate{Count: 1, Per: 10 * time.Minute, Burst: 3}, ratelimit.NewMemory(nil))
	if err != nil {
		log.Fatal(err)
	}
	for range 4 {
		d, err := logins.Allow(context.Background(), "ann", 1)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(d.Allowed, d.Remaining, d.RetryAfter.Round(time.Minute))
	}
	// Output:
	// true 2 0s
	// true 1 0s
	// true 0 0s
	// false 0 10m0s
}
