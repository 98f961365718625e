package redistopic

import (
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/internal/testing/door"
	"github.com/chert-http/chert/internal/testing/redistest"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/internal/testing/topictest"
)

func TestMain(m *testing.M) { servertest.Main(m, servertest.UseTCP) }

const history = 500

// setup starts a Redis, and a door before it.
func setup(t *testing.T) *topictest.Setup {
	srv := redistest.Start(t)
	d := door.Open(t, srv.Addr)
	return &topictest.Setup{
		History:  history,
		CutEvery: 50 * time.Millisecond,
		Open: func(t *testing.T, queue int) topictest.Store {
			return open(t, "redis://"+d.Addr, &Options{Queue: queue, History: history})
		},
		Cut:  d.Cut,
		Away: d.Shut,
		Restart: func(lose bool) {
			if !lose {
				srv.Must("SAVE")
			}
			srv.Kill()
			srv.Restart()
		},
	}
}

func open(t *testing.T, url string, o *Options) *Store {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := OpenURL(url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestSuite(t *testing.T) { topictest.Run(t, setup) }

// A client gets what is published once it has joined, also while the topic cannot be read.
func TestJoinedBeforeLoad(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	d := door.Open(t, srv.Addr)
	a, b := at("redis://"+d.Addr).Start(t, 0), at(srv.URL()).Start(t, 0)
	srv.Must("XADD", "chert:topic:{0}news", "1-1", fieldData, "long ago")
	d.Shut(true)
	c := a.Client("news", "")
	<-a.Joined
	b.Publish("news", "one")
	d.Shut(false)
	if id := c.Announced(); id != "1-1" {
		t.Errorf("the last before it joined is %q", id)
	}
	a.Eventually("news", "two")
	c.Wants("one", "two")
}

// The time after which clients are to come back arrives, however long it is.
func TestRetry(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Start(t).URL(), &Options{})
	topic, err := s.Topic("news")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []time.Duration{time.Second, 40 * 24 * time.Hour, math.MaxInt64} {
		if _, err := topic.Publish(eventstream.Event{Retry: want}); err != nil {
			t.Fatal(err)
		}
		all, err := s.streams.Redis().XRevRangeN(t.Context(), "chert:topic:{0}news", "+", "-", 1).Result()
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		if got := event(&all[0]).Retry; got != want.Truncate(time.Millisecond) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}
