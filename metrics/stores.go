package metrics

import "github.com/chert-http/chert/stats"

// What a process knows of the stores through which it shares topics and rooms.
var (
	storeUp        = desc("chert_store_up", "1 if the store responds.", "store")
	storeStreams   = desc("chert_store_streams", "Topics or rooms that are being read.", "store")
	storeRead      = desc("chert_store_events_read_total", "Events that were read, each once.", "store")
	storePublished = desc("chert_store_events_published_total", "Events that were stored.", "store")
	storeFailed    = desc("chert_store_events_failed_total",
		"Events that were not stored, or of which that is not known.", "store")
	storeWaiting = desc("chert_store_events_waiting", "Events that wait for the store.", "store")
	storeCuts    = desc("chert_store_connections_ended_total", "Connections that read and have ended.", "store")
	storeGaps    = desc("chert_store_gaps_total",
		"How often a topic or room has been found to lack its newest event.", "store")
)

// stores exports the state of stores. Of two with one name the first one counts.
func (o *sink) stores(all []stats.Store) {
	seen := make(map[string]bool, len(all))
	for i := range all {
		s := &all[i]
		name := valid(s.Name)
		if seen[name] {
			continue
		}
		seen[name] = true
		o.gauge(storeUp, number(!s.Away), name)
		o.gauge(storeStreams, int64(s.Streams), name)
		o.counter(storeRead, s.Read, name)
		o.counter(storePublished, s.Published, name)
		o.counter(storeFailed, s.Failed, name)
		o.gauge(storeWaiting, int64(s.Waiting), name)
		o.counter(storeCuts, s.Cuts, name)
		o.counter(storeGaps, s.Gaps, name)
	}
}
