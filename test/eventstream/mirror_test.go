package eventstream

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// fake is the store of a topic, of which the test says what it has. IDs are letters.
type fake struct{ wanted, ahead chan bool }

func newFake() *fake { return &fake{make(chan bool, 100), make(chan bool, 100)} }

func (f *fake) Publish(eventstream.Event) (string, error) { return "", nil }
func (f *fake) Compare(a, b string) (int, bool) {
	return strings.Compare(a, b), len(a) == 1 && len(b) == 1
}
func (f *fake) Wanted() { f.wanted <- true }
func (f *fake) Ahead()  { f.ahead <- true }

// lettered returns events whose IDs and data are letters.
func lettered(letters string) (all []eventstream.Event) {
	for _, c := range letters {
		all = append(all, eventstream.Event{ID: string(c), Data: string(c)})
	}
	return all
}

// TestMirror: a topic of a store waits for it, and tells clients what they have missed.
func TestMirror(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		f := newFake()
		feed, m, err := eventstream.NewMirror(f, &eventstream.TopicOptions{HistoryEvents: 4, Gap: &eventstream.Event{Data: "gap"}})
		if err != nil {
			t.Fatal(err)
		}
		complete := make(chan bool, 100)
		ts := engines.Start(t, fresh(handler(t, &eventstream.Options{OnOpen: func(s *eventstream.Stream, _ *http.Request) {
			complete <- feed.Join(s)
		}})))
		join := func(id string, want bool) *events {
			t.Helper()
			var lines []string
			if id != "" {
				lines = []string{"Last-Event-ID: " + id}
			}
			e := open(ts, lines...)
			if got := servertest.Await(t, complete, "Join"); got != want {
				t.Errorf("after %q: complete is %v", id, got)
			}
			return e
		}
		// Nothing is known yet: all wait.
		now, after, old, ahead, foreign := join("", true), join("c", true), join("a", true), join("g", true), join("what?", true)
		for range 5 {
			servertest.Await(t, f.wanted, "Wanted")
		}
		m.Load("b", lettered("cde"), func(joined time.Time) string {
			if d := time.Since(joined); d < 0 || d > time.Minute {
				t.Errorf("joined %v ago", d)
			}
			return "d" // what was the newest then
		})
		servertest.Await(t, f.ahead, "Ahead")
		after.wants("d", "e")
		old.wants("gap", "c", "d", "e")
		foreign.wants("gap", "c", "d", "e")
		if m.Newest() != "e" {
			t.Errorf("the newest is %q", m.Newest())
		}
		m.Append(lettered("f"))
		now.wants("e", "f")
		join("b", true).wants("c", "d", "e", "f") // the one before the first
		m.Append(append(lettered("g"), eventstream.Event{ID: "bad\n", Data: "bad"}, eventstream.Event{Data: "no ID"}))
		m.Append(lettered("h"))
		ahead.wants("h")
		now.wants("g", "h")
		join("b", false).wants("gap", "e", "f", "g", "h")
		join("c", false).wants("gap", "e", "f", "g", "h")
		join("d", true).wants("e", "f", "g", "h")
		// An event that the store has lost: nothing has followed when all is known.
		lost := join("k", true)
		servertest.Await(t, f.ahead, "Ahead")
		m.Mark()
		later := join("l", true) // since the mark: not known yet
		m.Current()
		lost.wants("gap")
		m.Append(lettered("m"))
		lost.wants("m")
		later.wants("gap", "m")
		now.wants("m")
		// The store has another end: what is common has been sent.
		m.Lost(lettered("fghxy"))
		now.wants("gap", "x", "y")
		lost.wants("gap", "x", "y")
		m.Lost(nil)
		now.wants("gap")
		m.Append(lettered("z"))
		now.wants("z")
		if m.Unload() {
			t.Error("a topic with streams was unloaded")
		}
	})
}

// TestGaps: a client that begins with an event that an empty topic does not know, and then reads slowly, gets a gap for
// both.
func TestGaps(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		feed := topic(t, &eventstream.TopicOptions{HistoryEvents: 100, Gap: &eventstream.Event{Data: "gap"}})
		s := fresh(handler(t, &eventstream.Options{OnOpen: joins(feed), Slow: eventstream.SlowDrop, MaxUnsent: 32 << 10}))
		lazy := open(engines.StartOn(t, s, servertest.ListenSmall(t, 16<<10)), "Last-Event-ID: of-another")
		lazy.wants("gap")
		const count = 10_000
		for i := range count {
			publish(t, feed, fmt.Sprint(i, strings.Repeat("x", 1000)))
		}
		for next, gap := 0, false; next < count; {
			data, i := lazy.data(), 0
			if data == "gap" {
				gap = true
				continue
			}
			if _, err := fmt.Sscanf(data, "%dx", &i); err != nil || i < next || i > next != gap {
				t.Fatal(i, next, gap, err)
			}
			next, gap = i+1, false
		}
	})
}

// TestGap: a topic in memory tells clients what they have missed, if it is asked to.
func TestGap(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		feed := topic(t, &eventstream.TopicOptions{HistoryEvents: 2, Gap: &eventstream.Event{Type: "missed", Data: "gap"}})
		ts := engines.Start(t, fresh(handler(t, &eventstream.Options{OnOpen: joins(feed)})))
		first := publish(t, feed, "a")
		publish(t, feed, "b", "c", "d")
		open(ts, "Last-Event-ID: "+first).wants("gap", "c", "d")
		open(ts, "Last-Event-ID: of another process").wants("gap", "c", "d")
	})
	for _, bad := range []eventstream.Event{{ID: "x"}, {Type: "a\nb"}} {
		if _, err := eventstream.NewTopic(&eventstream.TopicOptions{Gap: &bad}); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}
