package ratelimit

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/refusal"
	"github.com/chert-http/chert/internal/testing/race"
)

// refuser returns a direct handler that will refuse the next request.
func refuser(t *testing.T) direct.Handler {
	t.Helper()
	h, err := around(hello, &Options{Rules: []Rule{
		{Name: "a", Rate: Rate{1, time.Hour, 1}}, {Name: "b", Rate: Rate{2, time.Hour, 1}, Key: Everyone()},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var x direct.Exchange
	x.Wire().Reset(request(get("192.0.2.1:1")))
	h.(direct.Handler).ServeDirect(&x)
	return h.(direct.Handler)
}

// The fields of a refusal have one order, and a hook may change all of them.
func TestRefusalOrder(t *testing.T) {
	t.Parallel()
	hook := refusal.NewHook(func(p *refusal.Problem, h http.Header) []byte {
		h.Set("Content-Type", "text/x-own")
		h["X-Many"] = []string{"1", "2"}
		h.Del("Cache-Control")
		h.Set("Content-Length", "99") // the server's: not this, and no panic
		return []byte(p.Title)
	})
	for _, tt := range []struct {
		name string
		hook *refusal.Hook
		want string
	}{
		{"text", nil, "Cache-Control, Content-Length, Content-Type, Ratelimit=\"a\", Ratelimit=\"b\", Ratelimit-Policy, Retry-After"},
		{"hook", hook, "Content-Length, Content-Type, Ratelimit=\"a\", Ratelimit=\"b\", Ratelimit-Policy, Retry-After, X-Many=1, X-Many=2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := refuser(t)
			for range 100 {
				var x direct.Exchange
				x.Wire().Reset(request(get("192.0.2.1:1")))
				if tt.hook != nil {
					refusal.Set(&x, tt.hook)
				}
				h.ServeDirect(&x)
				var got []string
				for _, f := range x.Wire().Finish().Fields {
					value, _, _ := strings.Cut(f.Value, ";")
					switch {
					case f.Name == "Ratelimit" || f.Name == "X-Many":
						got = append(got, f.Name+"="+value)
					default:
						got = append(got, f.Name)
					}
				}
				if got := strings.Join(got, ", "); got != tt.want {
					t.Fatalf("got %s, want %s", got, tt.want)
				}
			}
		})
	}
}

// Attackers cause refusals most: one should cost no more than another response.
func TestRefusalAllocates(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	h, req := refuser(t), request(get("192.0.2.1:1"))
	var x direct.Exchange
	status := 0
	n := testing.AllocsPerRun(100, func() {
		x.Wire().Reset(req)
		h.ServeDirect(&x)
		status = x.Wire().Finish().Status
		x.Wire().Drop()
	})
	if n > 6 || status != 429 {
		t.Errorf("%v allocations for a %d", n, status)
	}
}
