package eventstream

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestMain(m *testing.M) { servertest.Main(m, servertest.UseTCP) }

// each runs f on loops with all placements, on goroutines and on net/http's server.
func each(t *testing.T, f func(t *testing.T, fresh func(h http.Handler) *chert.Server)) {
	t.Parallel()
	eachAlone(t, func(t *testing.T, fresh func(h http.Handler) *chert.Server) {
		t.Parallel()
		f(t, fresh)
	})
}

// eachAlone is each for tests that measure the process.
func eachAlone(t *testing.T, f func(t *testing.T, fresh func(h http.Handler) *chert.Server)) {
	run := func(name string, e chert.Engine, p chert.Placement) {
		t.Run(name, func(t *testing.T) {
			f(t, func(h http.Handler) *chert.Server { return &chert.Server{Engine: e, Placement: p, Handler: h} })
		})
	}
	engines.Placements(run)
	run("nethttp", engines.NetHTTP, chert.PlacementAdaptive)
}

// handler makes a Handler, topic a Topic.
func handler(t testing.TB, o *eventstream.Options) *eventstream.Handler {
	t.Helper()
	h, err := eventstream.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func topic(t testing.TB, o *eventstream.TopicOptions) *eventstream.Topic {
	t.Helper()
	topic, err := eventstream.NewTopic(o)
	if err != nil {
		t.Fatal(err)
	}
	return topic
}

// joins makes an OnOpen that joins topic.
func joins(topic *eventstream.Topic) func(*eventstream.Stream, *http.Request) {
	return func(s *eventstream.Stream, _ *http.Request) { topic.Join(s) }
}

// events is a client's end of a stream.
type events struct {
	t    testing.TB
	r    *bufio.Reader // of the body
	head *http.Response
	last string // the ID of the last event
}

// open opens a stream.
func open(ts *engines.Server, fields ...string) *events {
	ts.T.Helper()
	return opened(ts.Dial(), fields...)
}

func opened(c *servertest.Client, fields ...string) *events {
	c.T.Helper()
	c.Send(servertest.RawHead(append([]string{"GET / HTTP/1.1", "Host: h", "Accept: text/event-stream"}, fields...)...))
	return response(c)
}

func response(c *servertest.Client) *events {
	c.T.Helper()
	res, err := http.ReadResponse(c.R, nil)
	if err != nil {
		c.T.Fatal(err)
	}
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		c.T.Fatalf("%s %v", res.Status, res.Header)
	}
	return &events{t: c.T, r: bufio.NewReader(res.Body), head: res}
}

// event reads the lines of the next event that has more than a time to retry; "" at the
// end of the stream.
func (e *events) event() string {
	var lines []string
	for {
		line, err := e.r.ReadString('\n')
		if err == io.EOF && line == "" && len(lines) == 0 {
			return ""
		}
		if err != nil {
			e.t.Fatalf("%v after %q", err, append(lines, line))
		}
		if line = line[:len(line)-1]; line != "" {
			if !strings.HasPrefix(line, "retry: ") && !strings.HasPrefix(line, ":") {
				lines = append(lines, line)
			}
			if id, ok := strings.CutPrefix(line, "id: "); ok {
				e.last = id
			}
			continue
		}
		if len(lines) == 1 && lines[0] == "id: "+e.last {
			lines = nil // where the client is
		}
		if len(lines) > 0 {
			return strings.Join(lines, "|")
		}
	}
}

// data reads the data of the next event.
func (e *events) data() string {
	var data []string
	for line := range strings.SplitSeq(e.event(), "|") {
		if d, ok := strings.CutPrefix(line, "data: "); ok {
			data = append(data, d)
		}
	}
	return strings.Join(data, "\n")
}

// wants reads events with these data.
func (e *events) wants(data ...string) {
	e.t.Helper()
	for _, want := range data {
		if got := e.data(); got != want {
			e.t.Fatalf("got %.100q, want %.100q", got, want)
		}
	}
}

// ends reads the end of the stream.
func (e *events) ends() {
	e.t.Helper()
	if got := e.event(); got != "" {
		e.t.Fatalf("got %.100q, want the end", got)
	}
}

func numbered(from, to int) (s []string) {
	for i := from; i < to; i++ {
		s = append(s, fmt.Sprintf("event %d", i))
	}
	return s
}

func publish(t testing.TB, topic *eventstream.Topic, data ...string) (last string) {
	t.Helper()
	for _, d := range data {
		id, err := topic.Publish(eventstream.Event{Data: d})
		if err != nil {
			t.Fatal(err)
		}
		last = id
	}
	return last
}

const soon = 20 * time.Millisecond
