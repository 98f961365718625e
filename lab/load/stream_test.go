package load

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

func TestStream(t *testing.T) {
	const size = 2 << 20
	var answered atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n, err := io.Copy(io.Discard, r.Body); r.Method == "POST" && (n != size || err != nil) {
			t.Error(n, err)
		}
		if chunked := r.ContentLength < 0; chunked != (r.URL.Path == "/chunked") {
			t.Errorf("%s: length %d", r.URL, r.ContentLength)
		}
		answered.Add(1)
		w.Write(make([]byte, 100))
	}))
	defer s.Close()
	addr := s.Listener.Addr().String()
	for _, plan := range []Stream{
		{Method: "POST", Path: "/chunked", Chunked: true, Send: size},
		{Method: "POST", Path: "/length", Send: size},
		{Method: "GET", Path: "/", Receive: 100},
	} {
		answered.Store(0)
		plan.Addr, plan.Connections, plan.Seconds = addr, 2, 0.05
		res, err := plan.Run(t.Context())
		if err != nil || res.Errors != 0 || res.Requests == 0 || res.Requests != answered.Load() || res.Elapsed <= 0 {
			t.Errorf("%+v: %+v, %v; answered %d", plan, res, err, answered.Load())
		}
		plan.Receive = 99
		if res, err := plan.Run(t.Context()); err != nil || res.Errors != 2 || !strings.Contains(res.Fault, "not 99") {
			t.Errorf("an answer of another size: %+v, %v", res, err)
		}
	}
}
