package topictest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// A Store is what is tested.
type Store interface {
	Topic(name string) (*eventstream.Topic, error)
	Close() error
}

// A Setup is a store in processes of its own, for one test.
type Setup struct {
	// Open connects as a process does. queue is how many events wait while it is away.
	Open func(t *testing.T, queue int) Store
	// Cut ends all connections to it. Away(true) makes it unavailable until Away(false).
	Cut  func()
	Away func(bool)
	// CutEvery is how often Random calls Cut.
	CutEvery time.Duration
	// Restart stops it and starts it, without its data if lose is set.
	Restart func(lose bool)
	// History is how many events of a topic it keeps; it may keep up to 100 more.
	History int
}

// Instance is a process with clients.
type Instance struct {
	Store
	Joined chan bool // what Join has returned
	ts     *engines.Server
	t      *testing.T
}

// Start starts an instance.
func (s *Setup) Start(t *testing.T, queue int) *Instance {
	t.Helper()
	i := &Instance{Store: s.Open(t, queue), Joined: make(chan bool, 1000), t: t}
	t.Cleanup(func() { i.Close() }) // after the server, which may still have a request to begin with
	h, err := eventstream.New(&eventstream.Options{OnOpen: func(stream *eventstream.Stream, r *http.Request) {
		topic, err := i.Topic(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil {
			t.Error(err)
			return
		}
		i.Joined <- topic.Join(stream)
	}, Compression: true, MaxUnsent: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	i.ts = engines.Start(t, &chert.Server{Handler: h})
	return i
}

// Publish publishes and returns the ID.
func (i *Instance) Publish(topic, data string) string {
	i.t.Helper()
	id, err := i.publish(topic, data)
	if err != nil {
		i.t.Fatalf("Publish: %v", err)
	}
	return id
}

func (i *Instance) publish(topic, data string) (string, error) {
	t, err := i.Topic(topic)
	if err != nil {
		return "", err
	}
	return t.Publish(eventstream.Event{Data: data})
}

// Eventually publishes as soon as the store accepts it.
func (i *Instance) Eventually(topic, data string) (id string) {
	i.t.Helper()
	servertest.Eventually(i.t, "the store to accept "+data, func() bool {
		var err error
		id, err = i.publish(topic, data)
		return err == nil
	})
	return id
}

// An Event is what a client has got.
type Event struct{ ID, Type, Data string }

// Client is one that reads a topic.
type Client struct {
	t      *testing.T
	events chan Event
	cancel context.CancelFunc
	done   sync.WaitGroup
	Last   string // the ID of the last event
}

// Client connects to a topic, after the event with an ID unless that is "".
func (i *Instance) Client(topic, lastID string) *Client {
	i.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, _ := http.NewRequestWithContext(ctx, "GET", "http://"+i.ts.ListenAddr+"/"+topic, nil)
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	transport := &http.Transport{}
	res, err := transport.RoundTrip(req)
	if err != nil {
		i.t.Fatal(err)
	}
	c := &Client{t: i.t, events: make(chan Event, 100000), cancel: cancel, Last: lastID}
	c.done.Go(func() {
		defer close(c.events)
		defer transport.CloseIdleConnections()
		defer res.Body.Close()
		c.read(res.Body)
	})
	i.t.Cleanup(c.Close)
	return c
}

func (c *Client) read(body io.Reader) {
	var e Event
	for lines := bufio.NewScanner(body); lines.Scan(); {
		line := lines.Text()
		switch field, value, _ := strings.Cut(line, ": "); field {
		case "id":
			e.ID = value
		case "event":
			e.Type = value
		case "data":
			e.Data += value
		case "":
			if e != (Event{}) {
				c.events <- e
			}
			e = Event{}
		}
	}
}

// Close disconnects the client.
func (c *Client) Close() {
	c.cancel()
	c.done.Wait()
}

var errEnded = errors.New("the stream has ended")

// Next returns the next event of the topic, or of type "gap".
func (c *Client) next(patience time.Duration) (Event, error) {
	timeout := time.After(patience)
	for {
		select {
		case e, ok := <-c.events:
			if !ok {
				return Event{}, errEnded
			}
			if e.ID != "" {
				c.Last = e.ID
			}
			if e.Data != "" || e.Type != "" {
				return e, nil
			}
		case <-timeout:
			return Event{}, errors.New("nothing comes")
		}
	}
}

// gap stands in Wants for the event of type "gap".
const gap = "(gap)"

// Wants waits for events with some data, in order and with nothing between.
func (c *Client) Wants(all ...string) {
	c.t.Helper()
	for _, want := range all {
		e, err := c.next(time.Minute)
		got := e.Data
		if e.Type == "gap" {
			got = gap
		}
		if err != nil || got != want {
			c.t.Fatalf("got %q (%v), want %q", got, err, want)
		}
	}
}

// Announced waits for the ID that a client gets first which has named none.
func (c *Client) Announced() string {
	c.t.Helper()
	e := servertest.Await(c.t, c.events, "the ID of the newest event")
	if e.ID == "" || e.Data != "" {
		c.t.Fatalf("got %+v, want an ID", e)
	}
	c.Last = e.ID
	return e.ID
}
