package admin

import (
	"net/http"
	"time"

	"github.com/chert-http/chert/proxy"
	"github.com/chert-http/chert/stats"
)

// upstreamList is what /upstreams has.
type upstreamList struct {
	At        time.Time              `json:"at"`
	Upstreams []proxy.UpstreamStatus `json:"upstreams"`
	Stores    []stats.Store          `json:"stores"`
}

// upstreams sends what Options.Upstreams and Stores return. The page computes rates of it.
func (h *handler) upstreams(w http.ResponseWriter, _ *http.Request) {
	list := upstreamList{At: time.Now(), Upstreams: []proxy.UpstreamStatus{}, Stores: []stats.Store{}}
	if h.opts.Upstreams != nil {
		list.Upstreams = orEmpty(h.opts.Upstreams())
	}
	if h.opts.Stores != nil {
		list.Stores = orEmpty(h.opts.Stores())
	}
	sendJSON(w, list)
}
