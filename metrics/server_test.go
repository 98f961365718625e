package metrics

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert/chertest"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/router"
)

// What a server says of itself, on its own address: the sums are those of its client,
// and 64 routes with 8 statuses and a client that invents methods and paths make no
// more series than there are routes.
func TestServer(t *testing.T) {
	t.Parallel()
	const routes = 64
	statuses := []int{200, 204, 301, 304, 400, 404, 500, 503}
	r := router.New()
	for i := range routes {
		r.HandleFunc(fmt.Sprintf("/r%d/{status}", i), func(w http.ResponseWriter, r *http.Request) {
			var status int
			fmt.Sscan(r.PathValue("status"), &status)
			w.WriteHeader(status)
		})
	}
	s := chertest.NewUnstartedServer(r)
	h := Handler(s.Config, &Options{MaxAge: -1, NoRuntime: true})
	r.Handle("GET /metrics", h)
	s.Start()
	defer s.Close()

	c := servertest.Dial(t, strings.TrimPrefix(s.URL, "http://"))
	sent := 0
	ask := func(method, path string, want int) {
		t.Helper()
		c.Send(method + " " + path + " HTTP/1.1\r\nHost: a\r\n\r\n")
		if resp, _ := c.Response(method); resp.StatusCode != want {
			t.Fatalf("%s %s: %s", method, path, resp.Status)
		}
		sent++
	}
	for i := range routes {
		for _, status := range statuses {
			ask("GET", fmt.Sprintf("/r%d/%d", i, status), status)
		}
	}
	series := func() (n int) {
		for _, f := range gather(t, s.Config, &Options{MaxAge: -1}) {
			n += len(f.Metric)
		}
		return n
	}
	// The last request is counted when its loop is done with it.
	total := func() (n float64) {
		for _, m := range gather(t, s.Config, &Options{MaxAge: -1})["chert_requests_total"].GetMetric() {
			n += m.GetCounter().GetValue()
		}
		return n
	}
	servertest.Eventually(t, "all are counted", func() bool { return total() == float64(sent) })
	ask("INVENTED", "/none", 404)
	servertest.Eventually(t, "all are counted", func() bool { return total() == float64(sent) })
	before := series()
	for i := range 500 {
		ask(fmt.Sprintf("M%d", i), fmt.Sprintf("/none/%d", i), 404)
		ask(fmt.Sprintf("M%d", i), fmt.Sprintf("/r7/200?%d", i), 200)
	}
	servertest.Eventually(t, "all are counted", func() bool { return total() == float64(sent) })
	// A way or a kind of system call may be new.
	if after := series(); after > before+20 {
		t.Errorf("%d series, then %d", before, after)
	}
	all := gather(t, s.Config, &Options{MaxAge: -1})
	if n := len(all["http_server_request_duration_seconds"].GetMetric()); n > routes+3 {
		t.Errorf("%d routes", n)
	}
	byRoute := 0.0
	for _, m := range all["chert_route_requests_total"].GetMetric() {
		byRoute += m.GetCounter().GetValue()
	}
	if byRoute != float64(sent) {
		t.Errorf("the routes have %v requests, sent were %d", byRoute, sent)
	}
	if m := find(t, all["chert_route_requests_total"], "http_route=/r7/{status}", "http_response_status_class=2xx"); m.GetCounter().GetValue() != 502 {
		t.Errorf("%v", m)
	}

	// The handler itself runs on the server, so often that it may be found quick: then
	// it is on the loop that it asks.
	for range 50 {
		resp, err := s.Client().Get(s.URL + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !strings.Contains(string(body), "\nchert_loop_turns_total{loop=\"0\"} ") {
			t.Fatalf("%s", body)
		}
	}
}
