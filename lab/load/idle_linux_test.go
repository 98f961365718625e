package load

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// More connections than there are ports for one address come from several.
func TestIdleSources(t *testing.T) {
	defer func(n int) { perSource = n }(perSource)
	perSource = 10
	var mu sync.Mutex
	from := map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		mu.Lock()
		from[host]++
		mu.Unlock()
	}))
	defer s.Close()
	idle, err := OpenIdle(t.Context(), s.Listener.Addr().String(), 25, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	mu.Lock()
	defer mu.Unlock()
	if from["127.0.0.1"] != 10 || from["127.0.0.2"] != 10 || from["127.0.0.3"] != 5 {
		t.Errorf("connections from %v", from)
	}
}
