package redisstore_test

import (
	"context"
	"log"
	"net/http"
	"time"

	"github.com/chert-http/chert/ratelimit"
	"github.com/chert-http/chert/ratelimit/redisstore"
)

// Several processes limit together.
func Example() {
	store, err := redisstore.OpenURL("redis://127.0.0.1:6379/0", &redisstore.Options{Timeout: 50 * time.Millisecond, Instances: 4})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := store.Check(context.Background()); err != nil {
		log.Fatal(err) // one line: what is wrong
	}
	limit, err := ratelimit.New(&ratelimit.Options{
		Store: store,
		Rules: []ratelimit.Rule{{Name: "address", Rate: ratelimit.Rate{Count: 100, Per: time.Second}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	h := limit(http.DefaultServeMux)
	log.Fatal(http.ListenAndServe(":8080", h))
}
