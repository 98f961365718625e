package chertest

import (
	"io"
	"net/http"
	"testing"
)

// HTTP/2 is spoken where it is enabled, as by httptest's servers.
func TestEnableHTTP2(t *testing.T) {
	t.Parallel()
	for _, enable := range []bool{false, true} {
		s := NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }))
		s.EnableHTTP2 = enable
		s.StartTLS()
		defer s.Close()
		res, err := s.Client().Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if want := map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"}[enable]; string(body) != want || res.Proto != want {
			t.Errorf("%q and %q, want %q", body, res.Proto, want)
		}
	}
}
