package eventstream

import (
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/chert-http/chert/internal/takeover"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// slowLink is a takeover.Stream whose Offer waits, which those of carriers never do: so a test knows
// what a goroutine that sends to all is doing.
type slowLink struct {
	entered chan bool // nil: nothing waits
	leave   chan bool

	mu  sync.Mutex
	all strings.Builder
}

func (l *slowLink) Offer(p []byte, _, _ int) (much bool, err error) {
	if l.entered != nil {
		l.entered <- true
		<-l.leave
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.Write(p)
	return false, nil
}

func (l *slowLink) End(bool)             {}
func (l *slowLink) RemoteAddr() net.Addr { return takeover.Addr("") }

func (l *slowLink) got() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// pairOf is a stream whose link waits, and one after it whose does not.
func pairOf(t *testing.T) (first, second *Stream, slow, other *slowLink) {
	h, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	slow, other = &slowLink{entered: make(chan bool, 9), leave: make(chan bool)}, new(slowLink)
	return &Stream{h: h, link: slow}, &Stream{h: h, link: other}, slow, other
}

// A stream that has left a topic, while an event was being sent to others, and is in it again gets the
// event once.
func TestLeaveAndJoin(t *testing.T) {
	t.Parallel()
	topic, err := NewTopic(nil)
	if err != nil {
		t.Fatal(err)
	}
	first, second, slow, other := pairOf(t)
	before := topic.id(0)
	topic.JoinAfter(first, before)
	topic.JoinAfter(second, before)
	if _, err := topic.Publish(Event{Data: "hello"}); err != nil {
		t.Fatal(err)
	}
	servertest.Await(t, slow.entered, "the event's turn for the first")
	topic.Leave(second)
	topic.JoinAfter(second, before)
	close(slow.leave)
	servertest.Eventually(t, "all is sent", func() bool {
		topic.mu.Lock()
		defer topic.mu.Unlock()
		return !topic.pumping
	})
	if n := strings.Count(other.got(), "data: hello\n"); n != 1 {
		t.Errorf("it came %d times: %q", n, other.got())
	}
}

// emptyStore is a Source that is of no interest.
type emptyStore struct{}

func (emptyStore) Publish(Event) (string, error)   { return "", nil }
func (emptyStore) Compare(a, b string) (int, bool) { return strings.Compare(a, b), true }
func (emptyStore) Wanted()                         {}
func (emptyStore) Ahead()                          {}

// A stream that has left a topic, while others got what they have waited for, gets nothing, and does not
// count as one that waits.
func TestLeaveWaiting(t *testing.T) {
	t.Parallel()
	topic, m, err := NewMirror(emptyStore{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	first, second, slow, other := pairOf(t)
	topic.Join(first)
	topic.Join(second)
	loaded := make(chan bool)
	go func() {
		defer close(loaded)
		m.Load("1", nil, nil)
	}()
	servertest.Await(t, slow.entered, "the first's turn") // gets the ID of the newest event
	topic.Leave(second)
	close(slow.leave)
	servertest.Await(t, loaded, "Load")
	if got := other.got(); got != "" {
		t.Errorf("it got %q", got)
	}
	if topic.waiters != 0 {
		t.Errorf("%d wait", topic.waiters)
	}
}
