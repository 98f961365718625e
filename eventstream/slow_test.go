package eventstream

import (
	"strings"
	"testing"

	"github.com/chert-http/chert/internal/takeover"
)

// fullLink is a takeover.Stream that accepts nothing while it is full.
type fullLink struct {
	slowLink
	full, ended bool
}

func (l *fullLink) Offer(p []byte, body, limit int) (much bool, err error) {
	if l.full {
		return true, takeover.ErrFull
	}
	return l.slowLink.Offer(p, body, limit)
}

func (l *fullLink) End(bool) { l.ended = true }

// A client that still reads what was sent to it before it has joined a topic gets what the topic has by then: that the
// topic goes on meanwhile does not make it a slow one.
func TestJoinWhileFull(t *testing.T) {
	t.Parallel()
	h, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	topic, err := NewTopic(&TopicOptions{HistoryEvents: 1, Gap: &Event{Data: "gap"}})
	if err != nil {
		t.Fatal(err)
	}
	topic.Publish(Event{Data: "old"})
	l := &fullLink{full: true}
	s := &Stream{h: h, link: l}
	if topic.JoinAfter(s, "of another process") {
		t.Error("complete")
	}
	for range 3 { // each waits until the one before has been sent to all
		topic.Publish(Event{Data: "missed"})
	}
	topic.Publish(Event{Data: "newest"})
	topic.mu.Lock()
	topic.wait()
	topic.mu.Unlock()
	l.full = false
	(*source)(s).Writable()
	if got := l.got(); l.ended || strings.Count(got, "data: ") != 2 || !strings.HasPrefix(got, "data: gap\n\n") ||
		!strings.HasSuffix(got, "data: newest\n\n") {
		t.Errorf("ended: %v, got %q", l.ended, got)
	}
}
