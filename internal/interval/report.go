package interval

import (
	"cmp"
	"slices"
	"time"

	"github.com/chert-http/chert/stats"
)

// How many rows a Report has at most, so that a server with many loops and routes
// costs its viewers no more than another.
const (
	MaxRoutes  = 24
	MaxLoops   = 64
	MaxEvents  = 16
	MaxRunning = 10
)

const maxTarget = 200 // bytes of a request's target

// A Report is what happened between two samples. Rates are per second, durations in
// nanoseconds.
type Report struct {
	At      time.Time `json:"at"`
	Since   time.Time `json:"since"`   // when the server began to count: another server has another
	Seconds float64   `json:"seconds"` // between the samples
	// Average: the first sample is the server's start, so rates are averages since then, and
	// those of the runtime, whose start is unknown, are 0.
	Average bool `json:"average"`

	Requests float64          `json:"requests"`
	Ways     []Rate           `json:"ways"`
	Classes  [6]float64       `json:"classes"` // by the status's first digit; 0 for no response
	Totals   [6]uint64        `json:"totals"`  // the same since the server's start
	Running  int64            `json:"running"`
	Waiting  int64            `json:"waiting"`
	Read     float64          `json:"read"` // bytes
	Written  float64          `json:"written"`
	Conns    Conns            `json:"conns"`
	Stages   []Stage          `json:"stages"`
	Syscalls []Rate           `json:"syscalls"` // for each request, not per second
	Troubles []Rate           `json:"troubles"` // timeouts, malformed requests, refusals: events, not per second
	Loops    []Loop           `json:"loops"`
	AllLoops int              `json:"allLoops"` // more than len(Loops) if some are left out
	Routes   []Route          `json:"routes"`
	Recent   []PlacementEvent `json:"recent"` // the latest first
	Longest  []Running        `json:"longest"`
	TLS      TLS              `json:"tls"`
	Runtime  Usage            `json:"runtime"`
	Findings []Finding        `json:"findings"`
}

// Rate is a named number of events.
type Rate struct {
	Name string  `json:"name"`
	N    float64 `json:"n"`
}

// Conns are the connections now, and how fast they come.
type Conns struct {
	Open         int64   `json:"open"`
	Active       int64   `json:"active"`
	Loops        int64   `json:"loops"`
	Goroutines   int64   `json:"goroutines"`
	HTTP1        int64   `json:"http1"`
	HTTP2        int64   `json:"http2"`
	HTTP3        int64   `json:"http3"`
	WebSockets   int64   `json:"webSockets"`
	EventStreams int64   `json:"eventStreams"`
	Accepted     float64 `json:"accepted"`
	Closed       float64 `json:"closed"`
}

// Latency is the distribution of a duration.
type Latency struct {
	Rate float64       `json:"rate"`
	Mean time.Duration `json:"mean"`
	P50  time.Duration `json:"p50"`
	P90  time.Duration `json:"p90"`
	P99  time.Duration `json:"p99"`
}

// Stage is a part of the time of requests.
type Stage struct {
	Name string `json:"name"`
	Latency
}

// Loop is an event loop.
type Loop struct {
	Index       int           `json:"index"`
	Busy        float64       `json:"busy"` // part of the time, estimated from samples
	Turns       float64       `json:"turns"`
	Events      float64       `json:"events"`
	Inline      float64       `json:"inline"`
	Pooled      float64       `json:"pooled"`
	Direct      float64       `json:"direct"`
	Handovers   float64       `json:"handovers"` // events, not per second
	Yields      float64       `json:"yields"`    // events
	Connections int64         `json:"connections"`
	AtWork      int64         `json:"atWork"`
	Mail        int64         `json:"mail"`
	Lag         time.Duration `json:"lag"`
	Stale       bool          `json:"stale"`
	TurnP99     time.Duration `json:"turnP99"`
}

// Route is a route that has had requests.
type Route struct {
	Pattern string `json:"pattern"`
	Latency
	Handler   time.Duration `json:"handler"` // its 99th percentile
	Share     float64       `json:"share"`   // of the time in all handlers
	Ways      []Rate        `json:"ways"`    // parts of 1
	Errors    float64       `json:"errors"`  // statuses from 500, and no response
	Client    float64       `json:"client"`  // statuses from 400 to 499
	Handovers float64       `json:"handovers"`
	Demotions uint64        `json:"demotions"` // since the server began
}

// PlacementEvent is a stats.PlacementEvent in JSON.
type PlacementEvent struct {
	At     time.Time     `json:"at"`
	Kind   string        `json:"kind"`
	Method string        `json:"method"`
	Target string        `json:"target"`
	Held   time.Duration `json:"held"`
}

// Running is a request in progress.
type Running struct {
	Age    time.Duration `json:"age"`
	Stage  string        `json:"stage"`
	Method string        `json:"method"`
	Target string        `json:"target"`
	Way    string        `json:"way"`
	Loop   int           `json:"loop"` // -1 for none
	Peer   string        `json:"peer"`
}

// TLS is what handshakes did.
type TLS struct {
	Handshakes float64 `json:"handshakes"`
	Failed     float64 `json:"failed"`
	Resumed    float64 `json:"resumed"` // part of the handshakes
	Early      float64 `json:"early"`   // requests before their end
	Running    int64   `json:"running"`
	Waiting    int64   `json:"waiting"`
	Latency
}

// Usage is that of the Go runtime.
type Usage struct {
	Goroutines  int64         `json:"goroutines"`
	Heap        uint64        `json:"heap"`
	HeapGoal    uint64        `json:"heapGoal"`
	Allocated   float64       `json:"allocated"`
	Collections float64       `json:"collections"` // events
	GC          float64       `json:"gc"`          // part of all processors' time
	Pause       time.Duration `json:"pause"`       // 99th percentile
	Locks       float64       `json:"locks"`       // seconds of waiting in a second
	Scheduling  time.Duration `json:"scheduling"`  // 99th percentile
}

// Average returns the report from the server's beginning to the sample.
func Average(now *Sample) *Report {
	r := report(&Sample{Snapshot: stats.Snapshot{At: now.Since, Since: now.Since}, Runtime: now.Runtime}, now)
	r.Average = true
	return r
}

// Between returns what happened from one sample to the next. If the server was
// restarted between them, or its clock set back, that is the report since its start.
func Between(before, now *Sample) *Report {
	if !before.Since.Equal(now.Since) || now.At.Before(before.At) {
		return Average(now)
	}
	return report(before, now)
}

func report(before, now *Sample) *Report {
	b := between{before, now, max(now.At.Sub(before.At).Seconds(), 1e-3)}
	r := &Report{
		At: now.At, Since: now.Since, Seconds: b.seconds,
		Running: now.Running, Waiting: now.Waiting,
		Read: b.rate(before.BytesRead, now.BytesRead), Written: b.rate(before.BytesWritten, now.BytesWritten),
		Conns: b.conns(), Stages: b.stages(), AllLoops: len(now.Loops),
		Longest: Longest(now.Longest, now.At, MaxRunning), Recent: recent(now.Placement.Recent),
		TLS: b.tls(), Runtime: b.runtime(),
	}
	b.requests(r)
	b.syscalls(r)
	b.troubles(r)
	b.loops(r)
	b.routes(r)
	r.Findings = findings(r)
	return r
}

type between struct {
	before, now *Sample
	seconds     float64
}

// since returns how much a counter has grown. A loop that has not answered in time may
// be missing in one of the snapshots.
func since(before, now uint64) uint64 {
	if now < before {
		return 0
	}
	return now - before
}

func (b *between) rate(before, now uint64) float64 { return float64(since(before, now)) / b.seconds }

func grown(before, now *stats.Histogram) (h stats.Histogram) {
	for i := range now.Counts {
		h.Counts[i] = since(before.Counts[i], now.Counts[i])
	}
	h.Sum = max(now.Sum-before.Sum, 0)
	return h
}

func (b *between) latency(before, now *stats.Histogram) Latency {
	h := grown(before, now)
	n := h.N()
	if n == 0 {
		return Latency{}
	}
	return Latency{
		Rate: float64(n) / b.seconds, Mean: h.Sum / time.Duration(n),
		P50: h.Quantile(0.5), P90: h.Quantile(0.9), P99: h.Quantile(0.99),
	}
}

func (b *between) requests(r *Report) {
	type kind struct {
		protocol string
		class    int
		way      stats.Way
	}
	before := make(map[kind]uint64)
	for _, q := range b.before.Requests {
		before[kind{q.Protocol, q.Class, q.Way}] += q.N
	}
	var ways [stats.Ways]float64
	for _, q := range b.now.Requests {
		n := b.rate(before[kind{q.Protocol, q.Class, q.Way}], q.N)
		r.Requests += n
		if q.Class >= 0 && q.Class < len(r.Classes) {
			r.Classes[q.Class] += n
			r.Totals[q.Class] += q.N
		}
		if q.Way < stats.Ways {
			ways[q.Way] += n
		}
	}
	for w, n := range ways {
		r.Ways = append(r.Ways, Rate{stats.Way(w).String(), n})
	}
}

func (b *between) conns() Conns {
	c, before := &b.now.Connections, &b.before.Connections
	return Conns{
		Open: c.Open, Active: c.Active, Loops: c.Loops, Goroutines: c.Goroutines,
		HTTP1: c.HTTP1, HTTP2: c.HTTP2, HTTP3: c.HTTP3, WebSockets: c.WebSockets, EventStreams: c.EventStreams,
		Accepted: b.rate(before.Accepted, c.Accepted), Closed: b.rate(before.Closed, c.Closed),
	}
}

func (b *between) stages() []Stage {
	o, n := b.before, b.now
	return []Stage{
		{"total", b.latency(&o.Total, &n.Total)},
		{"head", b.latency(&o.Head, &n.Head)},
		{"wait", b.latency(&o.Wait, &n.Wait)},
		{"handler", b.latency(&o.Handler, &n.Handler)},
		{"write", b.latency(&o.Write, &n.Write)},
	}
}

// syscalls are divided by requests: that is the figure which does not change with the
// load.
func (b *between) syscalls(r *Report) {
	r.Syscalls = []Rate{}
	if r.Requests == 0 {
		return
	}
	for _, c := range b.now.Syscalls {
		if n := since(stats.Get(b.before.Syscalls, c.Name), c.N); n > 0 {
			r.Syscalls = append(r.Syscalls, Rate{c.Name, float64(n) / b.seconds / r.Requests})
		}
	}
	slices.SortFunc(r.Syscalls,
		func(x, y Rate) int { return cmp.Or(cmp.Compare(y.N, x.N), cmp.Compare(x.Name, y.Name)) })
}

func (b *between) troubles(r *Report) {
	r.Troubles = []Rate{}
	add := func(what string, before, now []stats.Count) {
		for _, c := range now {
			if n := since(stats.Get(before, c.Name), c.N); n > 0 {
				r.Troubles = append(r.Troubles, Rate{what + c.Name, float64(n)})
			}
		}
	}
	add("timeout: ", b.before.Timeouts, b.now.Timeouts)
	add("refused request: ", b.before.Malformed, b.now.Malformed)
	add("refused connection: ", b.before.Connections.Refused, b.now.Connections.Refused)
	slices.SortFunc(r.Troubles,
		func(x, y Rate) int { return cmp.Or(cmp.Compare(y.N, x.N), cmp.Compare(x.Name, y.Name)) })
	r.Troubles = r.Troubles[:min(len(r.Troubles), MaxEvents)]
}

func (b *between) loops(r *Report) {
	r.Loops = []Loop{}
	for i := range b.now.Loops {
		l, o := &b.now.Loops[i], new(stats.Loop)
		if i < len(b.before.Loops) {
			o = &b.before.Loops[i]
		}
		turns := grown(&o.Turn, &l.Turn)
		r.Loops = append(r.Loops, Loop{
			Index: i, Turns: b.rate(o.Turns, l.Turns), Events: b.rate(o.Events, l.Events),
			Busy:   min(turns.Sum.Seconds()*stats.SampleEvery/b.seconds, 1),
			Inline: b.rate(o.Inline, l.Inline), Pooled: b.rate(o.Pooled, l.Pooled), Direct: b.rate(o.Direct, l.Direct),
			Handovers: float64(since(o.Handovers, l.Handovers)), Yields: float64(since(o.Yields, l.Yields)),
			Connections: l.Connections, AtWork: l.AtWork, Mail: l.Mail, Lag: l.Lag, Stale: l.Stale,
			TurnP99: turns.Quantile(0.99),
		})
		if len(r.Loops) == MaxLoops {
			return
		}
	}
}

// oldest returns the requests that have been in progress longest.
func oldest(all []stats.Request, most int) []stats.Request {
	all = slices.SortedStableFunc(slices.Values(all), func(x, y stats.Request) int { return x.Began.Compare(y.Began) })
	return all[:min(len(all), most)]
}

// Longest returns the requests that have been in progress longest.
func Longest(all []stats.Request, now time.Time, most int) []Running {
	list := []Running{}
	for _, q := range oldest(all, most) {
		list = append(list, Running{max(now.Sub(q.Began), 0), q.Stage, Printable(q.Method), Printable(q.Target),
			q.Way.String(), q.Loop, q.Peer})
	}
	return list
}

func recent(all []stats.PlacementEvent) []PlacementEvent {
	list := []PlacementEvent{}
	for _, e := range slices.Backward(all) {
		if len(list) == MaxEvents {
			break
		}
		e.Method, e.Target = Printable(e.Method), Printable(e.Target)
		list = append(list, PlacementEvent(e))
	}
	return list
}

func (b *between) tls() TLS {
	o, n := &b.before.TLS, &b.now.TLS
	t := TLS{Failed: b.rate(o.Failed, n.Failed), Running: n.Running, Waiting: n.Waiting,
		Early: b.rate(o.EarlyRequests, n.EarlyRequests), Latency: b.latency(&o.Duration, &n.Duration)}
	for _, c := range n.Versions {
		t.Handshakes += b.rate(stats.Get(o.Versions, c.Name), c.N)
	}
	if t.Handshakes > 0 {
		t.Resumed = min(b.rate(o.Resumed, n.Resumed)/t.Handshakes, 1)
	}
	return t
}

func (b *between) runtime() Usage {
	o, n := &b.before.Runtime, &b.now.Runtime
	pauses, scheduling := grown(&o.Pauses, &n.Pauses), grown(&o.Scheduling, &n.Scheduling)
	u := Usage{
		Goroutines: n.Goroutines, Heap: n.HeapBytes, HeapGoal: n.HeapGoal, Allocated: b.rate(o.Allocated, n.Allocated),
		Collections: float64(since(o.Collections, n.Collections)),
		Locks:       max(n.LockSeconds-o.LockSeconds, 0) / b.seconds,
		Pause:       pauses.Quantile(0.99), Scheduling: scheduling.Quantile(0.99),
	}
	if cpu := n.CPUSeconds - o.CPUSeconds; cpu > 0 {
		u.GC = min(max((n.GCSeconds-o.GCSeconds)/cpu, 0), 1)
	}
	return u
}
