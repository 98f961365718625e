package eventstream

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// parsed is what a client dispatches.
type parsed struct {
	id, typ, data string
	retry         string
	dispatched    bool
}

// parse is WHATWG HTML section 9.2.6 for the first event of b, which must be all of it.
func parse(b string) (p parsed, rest string) {
	b = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(b)
	var data strings.Builder
	for {
		line, more, ok := strings.Cut(b, "\n")
		if !ok {
			return parsed{}, b
		}
		if b = more; line == "" {
			p.data, p.dispatched = strings.TrimSuffix(data.String(), "\n"), data.Len() > 0
			return p, b
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			p.typ = value
		case "data":
			data.WriteString(value + "\n")
		case "id":
			if !strings.Contains(value, "\x00") {
				p.id = value
			}
		case "retry":
			p.retry = value
		}
	}
}

// FuzzEvent: a client gets what was sent, and nothing else, whatever that is.
func FuzzEvent(f *testing.F) {
	f.Add("1", "add", "a\nb\r\nc\rd")
	f.Add("", "", "")
	f.Add(" 1", ":", "data: x\n\nevent: forged\n\n")
	f.Add("a\nid: b", "", "")
	f.Add("", "a\rdata: b", "\ufeff")
	f.Fuzz(func(t *testing.T, id, typ, data string) {
		e := Event{ID: id, Type: typ, Data: data}
		err := e.check()
		if bad := strings.ContainsAny(id+typ, "\r\n\x00"); bad != errors.Is(err, ErrField) {
			t.Fatal(err)
		}
		if err != nil {
			return
		}
		fr := e.frame()
		plain := string(fr.bytes(false))
		if want := fmt.Sprintf("%x\r\n%s\r\n", len(plain), plain); string(fr.bytes(true)) != want {
			t.Fatalf("the chunk is %q, want %q", fr.bytes(true), want)
		}
		p, rest := parse(plain)
		want := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(data)
		if rest != "" || p.id != id || p.typ != typ || p.data != want {
			t.Fatalf("%q is %+v, and %q", plain, p, rest)
		}
		if all := data != "" || typ != "" || id == ""; p.dispatched != all {
			t.Fatalf("%q is dispatched: %v", plain, p.dispatched)
		}
	})
}

func TestRetry(t *testing.T) {
	for d, want := range map[time.Duration]string{time.Second: "1000", time.Nanosecond: "1", 0: ""} {
		e := Event{ID: "1", Retry: d}
		if p, rest := parse(string(e.append(nil))); p.retry != want || p.dispatched || rest != "" {
			t.Errorf("%v: %+v", d, p)
		}
	}
}

// store is a Source that only takes events.
type store struct {
	Source
	got Event
}

func (s *store) Publish(e Event) (string, error) {
	s.got = e
	return "1", nil
}

// TestPublishDispatches: a client dispatches what is published if it does so when it is sent to it alone: the ID that the
// topic, or its store, makes up does not matter.
func TestPublishDispatches(t *testing.T) {
	t.Parallel()
	for _, e := range []Event{{}, {Type: "a"}, {Data: "a"}, {ID: "a"}, {Retry: time.Second}, {Retry: -1}} {
		sent := e.frame()
		want, _ := parse(string(sent.bytes(false)))
		topic, err := NewTopic(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := topic.Publish(e); err != nil {
			t.Fatal(err)
		}
		p, _ := parse(string(topic.log[0].bytes(false)))
		if p.dispatched != want.dispatched || p.data != want.data {
			t.Errorf("%+v: published %+v, sent %+v", e, p, want)
		}
		if e.ID != "" {
			continue // not in a topic of a store
		}
		var s store
		if topic, _, err = NewMirror(&s, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := topic.Publish(e); err != nil {
			t.Fatal(err)
		}
		s.got.ID = "1"
		f := s.got.frame() // as the Mirror does with it
		if p, _ = parse(string(f.bytes(false))); p.dispatched != want.dispatched {
			t.Errorf("%+v: from the store %+v, sent %+v", e, p, want)
		}
	}
}

func TestOptions(t *testing.T) {
	if _, err := New(&Options{Slow: 7}); err == nil {
		t.Error("Slow")
	}
	if _, err := New(&Options{Last: &Event{ID: "\n"}}); !errors.Is(err, ErrField) {
		t.Error(err)
	}
	if _, err := NewPoll(&PollOptions{ContentType: "a\r\nb: c"}); err == nil {
		t.Error("ContentType")
	}
	h, err := New(&Options{Retry: -1})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(h.appendRetry(nil)); got != ":\n\n" {
		t.Errorf("%q", got)
	}
	if h, err = New(&Options{Retry: math.MaxInt64}); err != nil {
		t.Fatal(err)
	}
	if got := string(h.appendRetry(nil)); !strings.HasPrefix(got, "retry: ") || strings.Contains(got, "-") {
		t.Errorf("%q", got)
	}
	seen := map[uint32]bool{}
	for range 1000 {
		a := ageOf(1000)
		if seen[a] = true; a < 800 || a > 1000 {
			t.Fatal(a)
		}
	}
	if len(seen) < 100 {
		t.Errorf("%d ages", len(seen))
	}
}
