package behave

import (
	"crypto/tls"
	"maps"
	"net/http"
	"runtime"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/stats"
)

// What a connection speaks, and with which version of TLS, is seen on every engine.
func TestStatsOpenTLS(t *testing.T) {
	t.Parallel()
	if engines.Layered {
		t.Skip("TLS is inside of another layer")
	}
	cert, roots := servertest.Certificate(t)
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		began, release := make(chan bool), make(chan bool)
		s := engines.StartTLS(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/waits" {
				began <- true
				<-release
			}
		})}, servertest.ListenTCP(t), cert)
		client := func(version uint16, h2 bool) *http.Client {
			tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: version, MaxVersion: version}, ForceAttemptHTTP2: h2}
			t.Cleanup(tr.CloseIdleConnections)
			return &http.Client{Transport: tr}
		}
		get := func(c *http.Client, path string) {
			res, err := c.Get("https://" + s.ListenAddr + path)
			if err != nil {
				t.Error(err)
				return
			}
			res.Body.Close()
		}
		get(client(tls.VersionTLS12, false), "/")
		get(client(tls.VersionTLS13, false), "/")
		get(client(tls.VersionTLS13, true), "/")
		busy := make(chan bool)
		go func() {
			get(client(tls.VersionTLS13, true), "/waits")
			close(busy)
		}()
		servertest.Await(t, began, "the handler")
		s.Dial() // and says nothing
		want := map[stats.Connection]int{
			{Protocol: "HTTP/1", TLS: "1.2", State: "idle"}:   1,
			{Protocol: "HTTP/1", TLS: "1.3", State: "idle"}:   1,
			{Protocol: "HTTP/2", TLS: "1.3", State: "idle"}:   1,
			{Protocol: "HTTP/2", TLS: "1.3", State: "active"}: 1,
			{Protocol: "TLS handshake", State: "new"}:         1,
		}
		var got map[stats.Connection]int
		defer func() {
			if t.Failed() {
				t.Errorf("got %v, want %v", got, want)
			}
		}()
		servertest.Eventually(t, "all connections are seen as they are", func() bool {
			got = make(map[stats.Connection]int)
			for _, c := range s.OpenConnections(10) {
				if c.Peer == "" && c.State != "new" || c.Local == "" {
					t.Errorf("no addresses: %+v", c)
				}
				got[stats.Connection{Protocol: c.Protocol, TLS: c.TLS, State: c.State}]++
			}
			return maps.Equal(got, want)
		})
		close(release)
		servertest.Await(t, busy, "the response")
	})
}

// A loop looks at its connections in parts, and misses none.
func TestStatsOpenMany(t *testing.T) {
	if !sys.HavePoller || engines.Layered {
		t.Skip("no loops")
	}
	many := 1250 * min(runtime.GOMAXPROCS(0), 4) // up to 4 loops have two parts
	began, release := make(chan bool), make(chan bool)
	s := engines.Start(t, &chert.Server{Engine: chert.EngineLoops, Placement: chert.PlacementPooled, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
		began <- true
		<-release
	})})
	peers := make(map[string]bool)
	var first, last *servertest.Client
	for range many {
		last = s.Dial()
		if peers[last.LocalAddr().String()] = true; first == nil {
			first = last
		}
	}
	for _, c := range []*servertest.Client{first, last} {
		c.Send(ask("GET /"))
		servertest.Await(t, began, "the handler")
	}
	// A call shows nothing of a loop that has had no processor for 100 ms.
	servertest.Eventually(t, "all connections are seen by one call", func() bool {
		all, missing := s.OpenConnections(2*many), maps.Clone(peers)
		for _, c := range all {
			delete(missing, c.Peer)
		}
		if len(all) > many {
			t.Fatalf("%d connections of %d are seen", len(all), many)
		}
		return len(all) == many && len(missing) == 0
	})
	if n := len(s.OpenConnections(1)); n > runtime.GOMAXPROCS(0) {
		t.Errorf("%d connections, want 1 of each loop", n)
	}
	servertest.Eventually(t, "both requests are seen by one call", func() bool {
		running := s.RunningRequests(many)
		return len(running) == 2 && running[0].Peer == first.LocalAddr().String() && running[1].Peer == last.LocalAddr().String()
	})
	close(release)
}
