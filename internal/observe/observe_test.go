package observe

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/place"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/stats"
)

// Only so many routes are logged at a time, each once a minute.
func TestSlowRoutes(t *testing.T) {
	t.Parallel()
	var s slow
	now := time.Unix(1000, 0)
	if !s.begin("/a", now) || s.begin("/a", now.Add(slowAgain-1)) || !s.begin("/a", now.Add(slowAgain)) {
		t.Error("a route is not logged once a minute")
	}
	now = now.Add(slowAgain)
	for i := range tally.MaxRoutes - 1 {
		if !s.begin(fmt.Sprint("/", i), now) {
			t.Fatalf("route %d is not logged", i)
		}
	}
	if s.begin("/more", now) {
		t.Error("clients that invent paths fill the log")
	}
	if !s.begin("/more", now.Add(slowAgain)) {
		t.Error("old routes are kept")
	}
}

// The events of a placement are the last ones, with bounded targets.
func TestPlaced(t *testing.T) {
	t.Parallel()
	var p placed
	long := "/" + strings.Repeat("x", 2*maxEventTarget)
	for i := range keptEvents + 3 {
		say, name := p.add(place.Demoted, true, "GET", fmt.Sprint("/", i, long), time.Millisecond)
		if !say || len(name) != maxEventTarget {
			t.Fatalf("%v, %q", say, name)
		}
	}
	if say, _ := p.add(place.Demoted, true, "GET", fmt.Sprint("/", 0, long), 0); say {
		t.Error("the same is logged twice")
	}
	var sn stats.Snapshot
	p.fill(&sn)
	last := sn.Placement.Recent[len(sn.Placement.Recent)-1]
	if n := len(sn.Placement.Recent); n != keptEvents || !strings.HasPrefix(last.Target, "/0/") || sn.Placement.Demotions != keptEvents+4 {
		t.Errorf("%d events, the last %q; %d demotions", n, last.Target, sn.Placement.Demotions)
	}
}

// Refusals are counted by reason, those of connections apart.
func TestRefusalsAreCounted(t *testing.T) {
	t.Parallel()
	var hook func(wire.Refusal)
	o := Server{Refused: &hook}
	for _, reason := range []string{NoRoom, NoShare, NoRoom, "bad", "bad"} {
		o.Refuse("1.2.3.4:5", nil, 503, reason, nil)
	}
	o.Refuse("1.2.3.4:5", nil, 400, "bad", nil)
	var sn stats.Snapshot
	o.refusals.fill(&sn)
	got := fmt.Sprint(sn.Connections.Refused, sn.Malformed)
	if want := fmt.Sprint([]stats.Count{{Name: NoRoom, N: 2}, {Name: NoShare, N: 1}}, []stats.Count{{Name: "bad", N: 3}}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A log that is slow gets a bounded number of lines, and is told how many others there were.
func TestLogSoon(t *testing.T) {
	t.Parallel()
	began, goOn, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var got []string
	o := Server{Reported: func() { close(over) }, Logf: func(format string, args ...any) {
		if got = append(got, fmt.Sprintf(format, args...)); len(got) == 1 {
			close(began)
			<-goOn
		}
	}}
	o.LogSoon("%d", 0)
	<-began
	const more = 3
	for i := range maxLines + more {
		o.LogSoon("%d", i+1)
	}
	if !o.Reporting() {
		t.Error("nothing is to be logged")
	}
	close(goOn)
	<-over
	last := fmt.Sprintf("chert: %d lines were not logged, as the log did not take them in time", more)
	if n := len(got); n != maxLines+2 || got[n-2] != fmt.Sprint(maxLines) || got[n-1] != last {
		t.Errorf("%d lines, the last are %q", n, got[max(n-2, 0):])
	}
}

// What does not return is no reason to log no more.
func TestLogSoonAfterExit(t *testing.T) {
	t.Parallel()
	lines, over := make(chan string, 3), make(chan struct{}, 1)
	o := Server{Reported: func() { over <- struct{}{} }, Logf: func(format string, args ...any) {
		line := fmt.Sprintf(format, args...)
		switch lines <- line; line {
		case "panics":
			panic(line)
		case "exits":
			runtime.Goexit()
		}
	}}
	for _, line := range []string{"panics", "exits", "returns"} {
		o.LogSoon("%s", line)
		<-over
		if got := <-lines; got != line {
			t.Errorf("got %q, want %q", got, line)
		}
	}
}

// What waits after a line whose logging ends the goroutine is logged by another.
func TestLogSoonBehindExit(t *testing.T) {
	t.Parallel()
	began, goOn, over := make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
	var got []string
	o := Server{Reported: func() { over <- struct{}{} }, Logf: func(format string, args ...any) {
		got = append(got, fmt.Sprintf(format, args...))
		switch len(got) {
		case 1:
			close(began)
			<-goOn
		case 2:
			runtime.Goexit()
		}
	}}
	o.LogSoon("blocks")
	<-began
	for _, line := range []string{"exits", "a", "b"} {
		o.LogSoon("%s", line)
	}
	close(goOn)
	if <-over; strings.Join(got, " ") != "blocks exits a b" {
		t.Errorf("%q", got)
	}
}

// A log that panics while the panic of the hook is logged does not end the process.
func TestRefusedAndLogPanic(t *testing.T) {
	t.Parallel()
	hook := func(wire.Refusal) { panic("p") }
	over := make(chan struct{}, 2)
	o := Server{Refused: &hook, Reported: func() { over <- struct{}{} }, Logf: func(string, ...any) { panic("the log fails") }}
	o.Refuse("1.2.3.4:5", nil, 503, "some", nil)
	for o.Reporting() {
		<-over
	}
}

// A line of the log has no control characters, and is bounded.
func TestRequestLine(t *testing.T) {
	t.Parallel()
	for head, want := range map[string]string{
		"":                                    "",
		"GET / HTTP/1.1\r\nHost: a":           "GET / HTTP/1.1",
		"a\x00\"\\\x7f\xff\nb":                `a\x00\x22\x5C\x7F\xFF`,
		strings.Repeat("a", 2*maxRefusedLine): strings.Repeat("a", maxRefusedLine),
	} {
		if got := requestLine([]byte(head)); got != want {
			t.Errorf("%q: got %q", head, got)
		}
	}
}

// What the log says of a handler that is not quick any more is one line of ASCII, whatever the client has named it, and
// a log that fails does not end the process.
func TestPlacedLogged(t *testing.T) {
	t.Parallel()
	after, over, got := time.Second, make(chan struct{}), ""
	o := Server{SlowAfter: &after, Reported: func() { close(over) }, Logf: func(format string, args ...any) {
		got += fmt.Sprintf(format, args...)
		panic("the log fails")
	}}
	for range 2 { // once
		o.Placed(false)(place.Demoted, "GET", "/\x9b2J", 3*time.Millisecond)
	}
	<-over
	const want = `chert: GET "/\x9b2J" is not quick any more, and runs on goroutines until it is (a loop was held for 3ms)`
	if got != want {
		t.Errorf("logged %q, want %q", got, want)
	}
}

// A hook that panics or ends its goroutine gets the refusals that follow.
func TestRefusedEnds(t *testing.T) {
	t.Parallel()
	got, log, over := "", "", make(chan struct{}, 1)
	hook := func(r wire.Refusal) {
		switch got += r.Reason + " "; r.Reason {
		case "panics":
			panic("p")
		case "exits":
			runtime.Goexit()
		}
	}
	o := Server{Refused: &hook, Reported: func() { over <- struct{}{} }, Logf: func(format string, args ...any) {
		log += fmt.Sprintf(format, args...)
	}}
	for _, reason := range []string{"panics", "exits", "exits", "returns"} {
		o.Refuse("1.2.3.4:5", nil, 503, reason, nil)
	}
	for o.Reporting() {
		<-over
	}
	if got != "panics exits exits returns " || log != "chert: Refused panicked: p" {
		t.Errorf("reported %q, logged %q", got, log)
	}
}
