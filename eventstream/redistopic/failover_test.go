package redistopic

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/redisstream"
	"github.com/chert-http/chert/internal/testing/door"
	"github.com/chert-http/chert/internal/testing/redistest"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/internal/testing/topictest"
)

func replica(t *testing.T, of *redistest.Server) *redistest.Server {
	host, port, _ := net.SplitHostPort(of.Addr)
	r := redistest.Start(t, "--replicaof", host+" "+port)
	r.Await("master_link_status:up", "INFO", "replication")
	return r
}

// at returns the setup of stores with a URL.
func at(url string) *topictest.Setup {
	return &topictest.Setup{Open: func(t *testing.T, queue int) topictest.Store {
		return open(t, url, &Options{Queue: queue, History: history})
	}}
}

// A replica takes over that lacks the newest event: clients that have received it get the event of a gap.
func TestReplicaLacksEvents(t *testing.T) {
	t.Parallel()
	primary := redistest.Start(t)
	second := replica(t, primary)
	d := door.Open(t, primary.Addr)
	s := at("redis://" + d.Addr)
	a, b := s.Start(t, 0), s.Start(t, 0)
	ca := a.Client("news", "")
	ca.Announced()
	a.Publish("news", "kept")
	ca.Wants("kept")
	kept := ca.Last
	second.Await("kept", "XRANGE", "chert:topic:{0}news", "-", "+")
	second.Must("REPLICAOF", "NO", "ONE")
	a.Publish("news", "lost")
	ca.Wants("lost")
	time.Sleep(2 * time.Millisecond) // both servers may give one ID in a millisecond
	d.To(second.Addr)
	a.Eventually("news", "new")
	ca.Wants("(gap)", "new")
	// Another process does not know the event that is lost, this one does.
	b.Client("news", ca.Last).Close()
	b.Client("news", kept).Wants("new")
	if a.Store.(*Store).Stats().Gaps != 1 {
		t.Errorf("%+v", a.Store.(*Store).Stats())
	}
}

// More is published at one moment than Redis keeps: clients get the event of a gap.
func TestMissed(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	a := at(srv.URL()).Start(t, 0)
	c := a.Client("news", "")
	c.Announced()
	a.Publish("news", "one")
	c.Wants("one")
	srv.Must("EVAL", `for n = 1, 2000 do
		redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', ARGV[2], string.format('%d', n))
	end`, "1", "chert:topic:{0}news", fmt.Sprint(history), fieldData)
	c.Wants("(gap)", fmt.Sprint(2000-history+1))
}

// A client that has got an event which is lost continues on another process.
func TestLostElsewhere(t *testing.T) {
	t.Parallel()
	primary := redistest.Start(t)
	second := replica(t, primary)
	d := door.Open(t, primary.Addr)
	s := at("redis://" + d.Addr)
	a, b := s.Start(t, 0), s.Start(t, 0)
	ca := a.Client("news", "")
	ca.Announced()
	a.Publish("news", "kept")
	ca.Wants("kept")
	second.Await("kept", "XRANGE", "chert:topic:{0}news", "-", "+")
	second.Must("REPLICAOF", "NO", "ONE")
	a.Publish("news", "lost")
	ca.Wants("lost")
	ca.Close()
	d.To(second.Addr)
	// It waits for what follows, until the process knows that the event is not there.
	cb := b.Client("news", ca.Last)
	cb.Wants("(gap)")
	b.Eventually("news", "new")
	cb.Wants("new")
}

// Sentinel lets a replica take over.
func TestSentinel(t *testing.T) {
	t.Parallel()
	primary := redistest.Start(t)
	second := replica(t, primary)
	sentinel := redistest.Sentinel(t, primary)
	sentinel.Await("num-slaves\n1", "SENTINEL", "MASTER", "main")
	s := at("redis+sentinel://" + sentinel.Addr + "/0?master_name=main")
	a, b := s.Start(t, 1000), s.Start(t, 0)
	ca, cb := a.Client("news", ""), b.Client("news", "")
	ca.Announced()
	cb.Announced()
	a.Publish("news", "before")
	ca.Wants("before")
	cb.Wants("before")
	second.Await("before", "XRANGE", "chert:topic:{0}news", "-", "+")
	primary.Kill()
	for n := range 10 {
		if _, err := publish(a, fmt.Sprint(n)); err != nil {
			t.Error(err)
		}
	}
	for n := range 10 {
		ca.Wants(fmt.Sprint(n))
		cb.Wants(fmt.Sprint(n))
	}
}

func publish(i *topictest.Instance, data string) (string, error) {
	topic, err := i.Topic("news")
	if err != nil {
		return "", err
	}
	return topic.Publish(event(&redisstream.Entry{Values: map[string]any{fieldData: data}}))
}

// Topics are spread over a Cluster.
func TestCluster(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	s := at("redis+cluster://" + nodes[0].Addr)
	a, b := s.Start(t, 0), s.Start(t, 0)
	for n := range 40 {
		name := fmt.Sprint("topic", n)
		c := b.Client(name, "")
		c.Announced()
		a.Publish(name, "one")
		b.Publish(name, "two")
		c.Wants("one", "two")
		a.Client(name, c.Last).Close()
	}
	used := 0
	for _, n := range nodes {
		if n.Must("DBSIZE") != "0" {
			used++
		}
	}
	if used != 3 {
		t.Errorf("%d nodes have topics", used)
	}
}

// What reads each shard has a connection of its own, also if there are more shards than go-redis
// has connections for commands: 10 for each processor.
func TestManyShards(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	shards := 20 * runtime.GOMAXPROCS(0)
	s := &topictest.Setup{Open: func(t *testing.T, _ int) topictest.Store {
		return open(t, srv.URL(), &Options{Shards: shards, History: history})
	}}
	a := s.Start(t, 0)
	for n := range 2 * shards { // some are in one shard
		name := fmt.Sprint("topic", n)
		c := a.Client(name, "")
		c.Announced()
		a.Publish(name, "x")
		c.Wants("x")
		c.Close()
	}
}

// Redis fails and responds again: a line for each.
func TestLines(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	var log servertest.Log
	s := &topictest.Setup{Open: func(t *testing.T, _ int) topictest.Store {
		return open(t, srv.URL(), &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	}}
	a := s.Start(t, 0)
	c := a.Client("news", "")
	c.Announced()
	store := a.Store.(*Store)
	if err := store.Check(t.Context()); err != nil {
		t.Error(err)
	}
	srv.Kill()
	servertest.Eventually(t, "Redis to be missed", func() bool { return store.Stats().Away })
	if err := store.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("got %v", err)
	}
	time.Sleep(300 * time.Millisecond) // for more lines, which there must not be
	srv.Restart()
	servertest.Eventually(t, "Redis to be found", func() bool { return !store.Stats().Away })
	a.Eventually("news", "x")
	c.Wants("x")
	servertest.Eventually(t, "that to be logged", func() bool { return strings.Count(log.String(), "\n") >= 2 })
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "event streams: Redis fails; clients stay") ||
		!strings.Contains(lines[0], "cannot be reached") || !strings.Contains(lines[1], "responds again") {
		t.Errorf("%q", lines)
	}
}

// What is wrong with a Redis is said in a line.
func TestCheck(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, "--requirepass", "secret")
	for url, want := range map[string]string{
		"redis://" + srv.Addr:                 "requires a password",
		"redis://:wrong@" + srv.Addr:          "refuses the user or password",
		srv.URL():                             "",
		"redis://127.0.0.1:1":                 "cannot be reached",
		"redis+cluster://:secret@" + srv.Addr: "is not a cluster",
	} {
		err := open(t, url, &Options{}).Check(context.Background())
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) || strings.Contains(got, "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// A program forgets topics that nothing uses.
func TestForgets(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Start(t).URL(), &Options{})
	for n := range 100 {
		if _, err := s.Topic(fmt.Sprint(n)); err != nil {
			t.Fatal(err)
		}
	}
	kept, _ := s.Topic("kept")
	servertest.Eventually(t, "topics to be forgotten", func() bool {
		runtime.GC()
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.topics) == 1
	})
	if again, _ := s.Topic("kept"); again != kept {
		t.Error("another topic")
	}
	for _, bad := range []string{"", strings.Repeat("x", 513)} {
		if _, err := s.Topic(bad); err == nil {
			t.Errorf("%q is a topic", bad)
		}
	}
	s.Close()
	if _, err := s.Topic("x"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if _, err := kept.Publish(event(&redisstream.Entry{})); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
