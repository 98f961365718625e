package proxy

import "time"

// UpstreamStatus is the state of an Upstream at one moment.
type UpstreamStatus struct {
	Name    string `json:"name"`
	Balance string `json:"balance"`
	// Panic: so few servers are up that ejections are ignored.
	Panic bool `json:"panic"`
	// Queue are the requests that wait for a server, of at most MaxQueue.
	Queue    int            `json:"queue"`
	MaxQueue int            `json:"max_queue"`
	Retries  RetryStatus    `json:"retries"`
	Servers  []ServerStatus `json:"servers"`
	// Resolve is why the latest resolution of a name failed, "" if none did.
	Resolve string `json:"resolve,omitempty"`
}

// RetryStatus is the state of an Upstream's budget for retries.
type RetryStatus struct {
	// Of the last 10 s. Limit is how many retries Requests permit.
	Requests uint64 `json:"requests"`
	Retries  uint64 `json:"retries"`
	Limit    uint64 `json:"limit"`
	// Refused are the retries that the budget did not permit, since the start.
	Refused uint64 `json:"refused"`
}

// ServerStatus is the state of a server.
type ServerStatus struct {
	// Addr is the address that is connected to.
	Addr string `json:"addr"`
	// Name is Server.Addr, or the name of an SRV record, if it is not an address.
	Name string `json:"name,omitempty"`
	// State is "unknown", "up", "ejected", "probing" or "draining", by requests and the
	// operator; Check is "unchecked", "passing" or "failing".
	State string `json:"state"`
	Check string `json:"check"`
	// Cause is what has changed State, or Check if that is failing.
	Cause string `json:"cause,omitempty"`
	// Since is when that was, and Until when an ejection ends; zero if it is not ejected.
	Since    time.Time `json:"since"`
	Until    time.Time `json:"until,omitzero"`
	Weight   int       `json:"weight"`
	Backup   bool      `json:"backup"`
	Draining bool      `json:"draining"`

	// InFlight are the requests of now, of all Upstreams with this server. MaxRequests is the
	// limit for them, 0 for none.
	InFlight    int64 `json:"in_flight"`
	MaxRequests int   `json:"max_requests"`
	// Idle are the connections that are kept.
	Idle int64 `json:"idle"`
	// Latency is the average time until the head of a response, of the last seconds.
	Latency time.Duration `json:"latency"`
	// IdleLimit is how long connections are kept, as far as that is known.
	IdleLimit time.Duration `json:"idle_limit"`

	// Counts since the server was first used. Requests are tries; Failures are those that
	// blame the server.
	Requests  uint64 `json:"requests"`
	Failures  uint64 `json:"failures"`
	Ejections uint64 `json:"ejections"`
	Dials     uint64 `json:"dials"`
	Reused    uint64 `json:"reused"`
}
