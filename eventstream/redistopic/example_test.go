package redistopic_test

import (
	"context"
	"log"
	"net/http"

	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/eventstream/redistopic"
)

// Clients of all processes get what one of them publishes.
func ExampleOpenURL() {
	store, err := redistopic.OpenURL("redis://127.0.0.1:6379/0", &redistopic.Options{Queue: 1000})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := store.Check(context.Background()); err != nil {
		log.Print(err) // one line; it is tried again
	}
	news, err := store.Topic("news")
	if err != nil {
		log.Fatal(err)
	}
	feed, err := eventstream.New(&eventstream.Options{
		OnOpen: func(s *eventstream.Stream, _ *http.Request) { news.Join(s) },
	})
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/feed", feed)
	if _, err := news.Publish(eventstream.Event{Data: "hello"}); err != nil {
		log.Print(err)
	}
}
