package middleware

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/chert-http/chert/direct"
)

// A wall is a wall clock beside a clock that is never set.
type wall struct {
	mono time.Duration
	zero time.Time // when mono was 0
	asks int
}

func (w *wall) stamp() stamp {
	return stamp{now: func() time.Time { w.asks++; return w.zero.Add(w.mono) }}
}

func (w *wall) clock() time.Duration { return w.mono }

func TestStamp(t *testing.T) {
	t.Parallel()
	const layout = "[02/Jan/2006:15:04:05 -0700]"
	w := &wall{mono: time.Hour, zero: time.Date(2026, 11, 21, 4, 5, 6, 25e7, time.FixedZone("", -3600))}
	s := w.stamp()
	at := func(at time.Duration) {
		t.Helper()
		want := w.zero.Add(at).Format(layout)
		for _, b := range [][]byte{nil, make([]byte, 0, 1000)} {
			if got := string(s.append(b, at, w.clock)); got != want {
				t.Errorf("now %v: at %v got %s, want %s", w.mono, at, got, want)
			}
		}
	}
	for range 4000 { // over some seconds
		at(w.mono)
		at(w.mono - time.Millisecond)
		w.mono += time.Millisecond
	}
	if w.asks > 200 { // each second, and where two loops do not agree which it is
		t.Errorf("the clock was asked %d times", w.asks)
	}
	for _, ago := range []time.Duration{0, 1, time.Second - 1, time.Second, time.Minute, 59 * time.Minute, 0} {
		at(w.mono - ago)
	}
	w.mono += 100 * time.Hour
	at(w.mono - time.Minute) // the first after a pause has taken long
	at(w.mono)
	w.zero = w.zero.Add(24 * time.Hour) // set: seen with the next second
	w.mono += time.Second
	at(w.mono)
}

// The time of a line is when the request arrived, and latency begins then, on both
// ways: also if that was long ago, or the server has set the time.
func TestAccessLogTime(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"plain", "direct", "direct, of the server"} {
		var out bytes.Buffer
		w := &wall{mono: time.Hour, zero: moment}
		l := NewAccessLog(&AccessLogOptions{Format: LogCommon, Latency: true, Output: &out})
		l.mono, l.stamp = w.clock, w.stamp()
		h := l.Wrap(direct.HandlerFunc(func(x *direct.Exchange) {
			if x.Wire().Time() == 0 && way != "plain" {
				t.Error("those inside do not get the time")
			}
			w.mono += 90 * time.Second
		})).(direct.Handler)
		came := w.mono
		r := request("GET", "/", "")
		switch way {
		case "plain":
			plain(h, r)
		case "direct":
			directly(t, h, r)
		default:
			var x direct.Exchange
			exchange(&x, r)
			came -= 3 * time.Second
			x.Wire().SetTime(came)
			h.ServeDirect(&x)
			sent(x.Wire().Finish())
		}
		l.Close()
		want := fmt.Sprintf("%s%s\"GET / HTTP/1.1\" 200 - %d\n", "192.0.2.1 - - ", moment.Add(came).Format(stampLayout+" "), (w.mono - came).Microseconds())
		if got := out.String(); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", way, got, want)
		}
	}
}
