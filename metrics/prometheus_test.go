package metrics

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/stats"
)

// patience is how long Prometheus may take for anything.
const patience = 2 * time.Minute

// A server is a Prometheus that scrapes one target.
type server struct {
	url string
	out *servertest.Log
}

// startPrometheus starts one with these features enabled.
func startPrometheus(t *testing.T, target, features string) *server {
	t.Helper()
	need(t, "prometheus", "prometheus")
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 250ms}\nscrape_configs:\n- job_name: chert\n  static_configs: [{targets: [%q]}]\n",
		strings.TrimPrefix(target, "http://"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &server{out: new(servertest.Log)}
	if err := s.start(t, config, filepath.Join(dir, "data"), features); err != nil {
		t.Fatalf("prometheus does not start: %v\n%s", err, s.out)
	}
	return s
}

func (s *server) start(t *testing.T, config, data, features string) error {
	addr := freeport.Addr(t)
	s.url = "http://" + addr
	cmd := exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+data, "--web.listen-address="+addr,
		"--enable-feature="+features, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = s.out, s.out
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
	})
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if resp, err := http.Get(s.url + "/-/ready"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == 200 {
				return nil
			}
		}
		select {
		case <-ended:
			return errors.New("it has ended")
		case <-time.After(20 * time.Millisecond):
		}
	}
	return errors.New("it is not ready")
}

// get asks the API, and returns the data.
func (s *server) get(t *testing.T, path string, query ...string) json.RawMessage {
	t.Helper()
	q := url.Values{}
	for i := 0; i < len(query); i += 2 {
		q.Set(query[i], query[i+1])
	}
	resp, err := http.Get(s.url + "/api/v1/" + path + "?" + q.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	var v struct {
		Status string
		Data   json.RawMessage
	}
	if err := json.Unmarshal(body, &v); err != nil || v.Status != "success" {
		t.Fatalf("%s %q: %v: %s", path, query, err, body)
	}
	return v.Data
}

// query returns the values of an expression.
func (s *server) query(t *testing.T, expr string) (values []string) {
	t.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	if err := json.Unmarshal(s.get(t, "query", "query", expr), &data); err != nil {
		t.Fatal(err)
	}
	for _, r := range data.Result {
		values = append(values, fmt.Sprint(r.Value[1]))
	}
	return values
}

// eventually repeats f until it reports true.
func (s *server) eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !f(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v; targets: %s\n%s", what, patience, s.get(t, "targets"), s.out)
		}
	}
}

func (s *server) want(t *testing.T, expr, want string) {
	t.Helper()
	var got []string
	s.eventually(t, expr+" is "+want, func() bool {
		got = s.query(t, expr)
		return len(got) == 1 && got[0] == want
	})
}

// counting returns a target that has counted the more the more often it was scraped.
func counting(t *testing.T) string {
	var mu sync.Mutex
	n := 0
	src := fake{stats: func() stats.Snapshot {
		mu.Lock()
		defer mu.Unlock()
		n++
		s := full()
		for i := range s.Routes {
			s.Routes[i].Duration.Observe(10*time.Millisecond, uint64(n))
		}
		s.Handler.Observe(10*time.Millisecond, uint64(n))
		s.Loops[0].Turn.Observe(time.Millisecond, uint64(n))
		s.TLS.Duration.Observe(time.Millisecond, uint64(n))
		return s
	}}
	var e Exemplars
	e.Observe("GET /users/{id}", 10*time.Millisecond, [16]byte{0xab}, [8]byte{0xcd})
	srv := httptest.NewServer(Handler(src, &Options{Exemplars: &e, MaxAge: -1}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// A Prometheus as it is by default, with exemplars: values, classic histograms, and
// each query of the dashboard has a result.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	s := startPrometheus(t, counting(t), "exemplar-storage")
	s.want(t, `http_server_active_requests`, "5")
	s.want(t, `chert_requests_total{http_response_status_class="2xx",network_protocol_version="2",way="inline"}`, "3")
	s.want(t, `sum(chert_loop_connections)`, "4")
	s.eventually(t, "a quantile", func() bool {
		got := s.query(t, `histogram_quantile(0.5, rate(http_server_request_duration_seconds_bucket{http_route="/users/{id}"}[10s]))`)
		return len(got) == 1 && strings.HasPrefix(got[0], "0.0") // 10 ms is in the bucket from 4.8 to 9.3 or that up to 22 ms
	})
	s.eventually(t, "an exemplar", func() bool {
		now := time.Now()
		data := s.get(t, "query_exemplars", "query", "http_server_request_duration_seconds_bucket",
			"start", fmt.Sprint(now.Add(-time.Hour).Unix()), "end", fmt.Sprint(now.Add(time.Minute).Unix()))
		return bytes.Contains(data, []byte("ab000000000000000000000000000000"))
	})
	for _, q := range dashboard(t) {
		expr := q.expr(t)
		s.eventually(t, fmt.Sprintf("panel %q: %s", q.panel, expr), func() bool { return len(s.query(t, expr)) > 0 })
	}
}

// One that stores native histograms.
func TestPrometheusNative(t *testing.T) {
	t.Parallel()
	s := startPrometheus(t, counting(t), "native-histograms")
	s.eventually(t, "a native histogram", func() bool {
		got := s.query(t, `histogram_count(http_server_request_duration_seconds{http_route="/users/{id}"}) > 4`)
		return len(got) == 1
	})
	s.want(t, `histogram_count(chert_request_stage_duration_seconds{stage="write"})`, "4")
	s.want(t, `histogram_sum(chert_request_stage_duration_seconds{stage="write"}) > bool 60`, "1")
	// 10 ms is in the bucket up to 2^-6.5 s, 11.05 ms.
	s.eventually(t, "a quantile", func() bool {
		got := s.query(t, `histogram_quantile(0.5, rate(http_server_request_duration_seconds{http_route="/users/{id}"}[10s]))`)
		return len(got) == 1 && (strings.HasPrefix(got[0], "0.009") || strings.HasPrefix(got[0], "0.01"))
	})
}
