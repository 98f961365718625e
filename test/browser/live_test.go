package browser

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/eventstream"
	"github.com/chromedp/chromedp"
)

// another opens another tab of the same browser.
func (tab *tab) another(t *testing.T) *tab {
	t.Helper()
	ctx, _ := chromedp.NewContext(tab.ctx)
	t.Cleanup(func() { chromedp.Cancel(ctx) })
	return &tab2{ctx: ctx, origin: tab.origin}
}

type tab2 = tab

// shows waits until the element with this id has the text.
func (tab *tab) shows(t *testing.T, id, text string) {
	t.Helper()
	got := eval[string](t, tab, `(async () => {
		const out = document.getElementById(`+quoted(id)+`);
		for (const end = Date.now() + 60000; out.textContent !== `+quoted(text)+` && Date.now() < end;) await new Promise(r => setTimeout(r, 5));
		return out.textContent;
	})()`)
	if got != text {
		t.Fatalf("%s says %q, want %q", id, got, text)
	}
}

// says types a line and sends it.
func (tab *tab) says(t *testing.T, id, text string) {
	t.Helper()
	eval[int](t, tab, `{document.getElementById(`+quoted(id+"-text")+`).value = `+quoted(text)+`; document.getElementById(`+quoted(id+"-send")+`).click(); 1}`)
}

// Two tabs hear each other, find the server again after a restart, and miss nothing.
func TestDemoLive(t *testing.T) {
	t.Parallel()
	bin := buildDemo(t)
	origin, stop := runDemo(t, bin, "127.0.0.1:0")
	one := startTab(t, origin)
	tabs := []*tab{one, one.another(t)}
	connected := func() {
		t.Helper()
		for _, tab := range tabs {
			tab.shows(t, "chat-state", "connected")
			tab.shows(t, "feed-state", "connected")
		}
	}
	for _, tab := range tabs {
		tab.visit(t, origin+"/")
	}
	connected()
	tabs[0].says(t, "chat", "hello")
	tabs[1].says(t, "feed", "first")
	for _, tab := range tabs {
		tab.shows(t, "chat", "hello\n")
		tab.shows(t, "feed", "first\n")
	}
	stop()
	for _, tab := range tabs {
		tab.shows(t, "chat-state", "not connected")
		tab.shows(t, "feed-state", "not connected")
	}
	runDemo(t, bin, strings.TrimPrefix(origin, "http://"))
	res, err := http.Post(origin+"/feed", "text/plain", strings.NewReader("while they were away, or not"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	connected()
	tabs[1].says(t, "chat", "again")
	for _, tab := range tabs {
		tab.shows(t, "chat", "hello\nagain\n")
		tab.shows(t, "feed", "first\nwhile they were away, or not\n")
	}
}

// collector is a page that keeps what it has received.
const collector = `<!doctype html><title>collector</title><link rel="icon" href="data:,">
<script>const all = []; let opened = 0, ends = 0;
addEventListener("load", () => {
	const e = new EventSource("/feed");
	e.onopen = () => { opened++; };
	e.onmessage = e => all.push(e.data);
	e.addEventListener("shutdown", () => { ends++; });
});</script>`

// EventSources whose streams end again and again get each event once and in order; one
// that finds the server full comes back.
func TestEventSource(t *testing.T) {
	t.Parallel()
	topic, err := eventstream.NewTopic(nil)
	if err != nil {
		t.Fatal(err)
	}
	feed, err := eventstream.New(&eventstream.Options{
		OnOpen: func(s *eventstream.Stream, _ *http.Request) { topic.Join(s) },
		MaxAge: 200 * time.Millisecond, Retry: 50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	full, err := eventstream.New(&eventstream.Options{MaxStreams: 1, Retry: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	full.Close() // it takes nobody
	var once sync.Once
	refused := make(chan bool)
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, collector)
	})
	mux.HandleFunc("/feed", func(w http.ResponseWriter, r *http.Request) {
		first := false
		once.Do(func() { first = true; close(refused) })
		if first {
			full.ServeHTTP(w, r)
		} else {
			feed.ServeHTTP(w, r)
		}
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &chert.Server{Handler: mux}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	one := startTab(t, "http://"+l.Addr().String())
	tabs := []*tab{one, one.another(t), one.another(t)}
	for _, tab := range tabs {
		tab.visit(t, one.origin+"/")
		eval[int](t, tab, `(async () => { while (opened === 0) await new Promise(r => setTimeout(r, 5)); return opened; })()`)
	}
	<-refused
	for end := time.Now().Add(patience); topic.Len() < len(tabs); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not all have joined")
		}
	}
	const count = 300
	for i := range count {
		if _, err := topic.Publish(eventstream.Event{Data: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond) // longer than streams last
	}
	for i, tab := range tabs {
		got := eval[[]string](t, tab, `(async () => { while (!all.includes(`+quoted(fmt.Sprint(count-1))+`)) await new Promise(r => setTimeout(r, 5)); return all; })()`)
		for j, s := range got {
			if s != fmt.Sprint(j) && !(j == 0 && len(got) < count) {
				t.Fatalf("tab %d: event %d is %q", i, j, s)
			}
		}
		if len(got) != count {
			t.Errorf("tab %d: %d events of %d", i, len(got), count)
		}
		if n := eval[int](t, tab, `opened`); n < 3 {
			t.Errorf("tab %d: %d connections", i, n)
		}
	}
}
