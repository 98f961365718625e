package admin

import (
	"net/http"
	"time"

	"github.com/chert-http/chert/proxy"
)

// upstreamList is what /upstreams has.
type upstreamList struct {
	At        time.Time              `json:"at"`
	Upstreams []proxy.UpstreamStatus `json:"upstreams"`
}

// upstreams sends what Options.Upstreams returns. The page computes rates of it.
func (h *handler) upstreams(w http.ResponseWriter, _ *http.Request) {
	list := upstreamList{At: time.Now(), Upstreams: []proxy.UpstreamStatus{}}
	if h.opts.Upstreams != nil {
		list.Upstreams = orEmpty(h.opts.Upstreams())
	}
	sendJSON(w, list)
}
