package proxy

import (
	"testing"
	"time"

	"github.com/chert-http/chert/internal/reason"
)

// A request counts in the budget for retries when a server is asked for, however long its body has taken to come.
func TestSlowBodyInBudget(t *testing.T) {
	t.Parallel()
	p := NewPool(nil)
	defer p.Close()
	u, err := p.Upstream(&UpstreamOptions{Name: "u", Servers: []Server{{Addr: "127.0.0.1:80"}}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := New(&Options{Upstream: u})
	if err != nil {
		t.Fatal(err)
	}
	r := &trip{h: h, u: u, method: "POST", later: true, begin: now() - int64(time.Second)}
	u.budget.Request(r.begin + int64(16*time.Second)) // in the place of the second that r has begun in, see window.Counter
	if s, waits := r.Wait(nil); s == nil || waits {
		t.Fatalf("server %v, waits %v", s, waits)
	}
	r.Done(reason.None)
	if n := u.Status().Retries.Requests; n != 2 {
		t.Errorf("%d requests in the budget, want 2", n)
	}
}
