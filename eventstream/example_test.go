package eventstream_test

import (
	"bufio"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/chert-http/chert/eventstream"
)

func Example() {
	news, err := eventstream.NewTopic(nil)
	if err != nil {
		log.Fatal(err)
	}
	joined := make(chan bool)
	feed, err := eventstream.New(&eventstream.Options{
		OnOpen: func(s *eventstream.Stream, r *http.Request) {
			news.Join(s)
			joined <- true
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	srv := httptest.NewServer(feed)
	defer srv.Close()
	defer feed.Close()

	go func() {
		<-joined
		news.Publish(eventstream.Event{Type: "greeting", Data: "hello\nworld"})
	}()
	res, err := http.Get(srv.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if line := lines.Text(); strings.HasPrefix(line, "event") || strings.HasPrefix(line, "data") {
			fmt.Println(line)
		}
		if lines.Text() == "data: world" {
			break
		}
	}
	// Output:
	// event: greeting
	// data: hello
	// data: world
}

func ExamplePollHandler() {
	polls, err := eventstream.NewPoll(&eventstream.PollOptions{
		OnOpen: func(p *eventstream.Poll, r *http.Request) {
			go p.Answer([]byte(`{"asked": "` + r.URL.Path + `"}`)) // usually later, when there is something to say
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	srv := httptest.NewServer(polls)
	defer srv.Close()
	res, err := http.Get(srv.URL + "/job/7")
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := bufio.NewReader(res.Body).ReadString('}')
	fmt.Println(body)
	// Output: {"asked": "/job/7"}
}
