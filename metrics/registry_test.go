package metrics

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/chert-http/chert/proxy"
	"github.com/chert-http/chert/stats"
)

// Two servers share a registry by a label that their metrics do not have.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	upstreams := func() []proxy.UpstreamStatus {
		return []proxy.UpstreamStatus{{Name: "app", Servers: []proxy.ServerStatus{{Addr: "10.0.0.1:80"}}}}
	}
	for label, o := range map[string]*Options{"server": nil, "upstream": {Stores: func() []stats.Store { return nil }},
		"store": {Upstreams: upstreams}, "listener": {Upstreams: upstreams, Stores: func() []stats.Store { return nil }}} {
		reg := prometheus.NewPedanticRegistry()
		for _, value := range []string{"public", "private"} {
			wrapped := prometheus.WrapRegistererWith(prometheus.Labels{label: value}, reg)
			if err := wrapped.Register(NewCollector(busyServer(), o)); err != nil {
				t.Errorf("%s: %v", label, err)
			}
		}
		if _, err := reg.Gather(); err != nil {
			t.Errorf("%s: %v", label, err)
		}
	}
}
