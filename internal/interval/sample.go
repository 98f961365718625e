package interval

import (
	"math"
	"runtime/metrics"
	"time"

	"github.com/chert-http/chert/stats"
)

// A Sample is a server's snapshot with that of the Go runtime it runs on.
type Sample struct {
	stats.Snapshot
	Runtime Runtime
	// Longest are the requests that have been in progress longest.
	Longest []stats.Request
}

// Take returns a sample of a server in this process.
func Take(source stats.Source) *Sample {
	s := &Sample{Snapshot: source.Stats(), Runtime: readRuntime()}
	s.Longest = oldest(source.RunningRequests(MaxRunning), MaxRunning)
	for i := range s.Longest {
		t := &s.Longest[i].Target
		if *t = WithoutQuery(*t); len(*t) > maxTarget {
			*t = (*t)[:maxTarget] + "..."
		}
	}
	return s
}

// Runtime is what the Go runtime has counted since the process began.
type Runtime struct {
	Goroutines          int64
	HeapBytes, HeapGoal uint64 // live and dead objects; the heap's size at the next collection
	Allocated           uint64 // bytes
	Collections         uint64
	// GCSeconds is the part of CPUSeconds, the time of all processors, that the
	// collector took. Both change when a collection ends.
	GCSeconds, CPUSeconds float64
	// LockSeconds is how long goroutines have waited for mutexes, all together.
	LockSeconds float64
	// Pauses are those for collections, and Scheduling the time that goroutines were
	// ready to run and did not.
	Pauses, Scheduling stats.Histogram
}

// The metrics that are read, in the order of readRuntime.
var runtimeNames = [...]string{
	"/sched/goroutines:goroutines",
	"/memory/classes/heap/objects:bytes",
	"/gc/heap/goal:bytes",
	"/gc/heap/allocs:bytes",
	"/gc/cycles/total:gc-cycles",
	"/cpu/classes/gc/total:cpu-seconds",
	"/cpu/classes/total:cpu-seconds",
	"/sync/mutex/wait/total:seconds",
	"/sched/pauses/total/gc:seconds",
	"/sched/latencies:seconds",
}

func readRuntime() Runtime {
	var read [len(runtimeNames)]metrics.Sample
	for i, name := range runtimeNames {
		read[i].Name = name
	}
	metrics.Read(read[:])
	count := func(i int) uint64 {
		if read[i].Value.Kind() != metrics.KindUint64 {
			return 0 // a version of Go without it
		}
		return read[i].Value.Uint64()
	}
	seconds := func(i int) float64 {
		if read[i].Value.Kind() != metrics.KindFloat64 {
			return 0
		}
		return read[i].Value.Float64()
	}
	histogram := func(i int) (h stats.Histogram) {
		if read[i].Value.Kind() == metrics.KindFloat64Histogram {
			convert(&h, read[i].Value.Float64Histogram())
		}
		return h
	}
	return Runtime{
		Goroutines: int64(count(0)), HeapBytes: count(1), HeapGoal: count(2), Allocated: count(3),
		Collections: count(4),
		GCSeconds:   seconds(5), CPUSeconds: seconds(6), LockSeconds: seconds(7),
		Pauses: histogram(8), Scheduling: histogram(9),
	}
}

// convert counts each duration as the middle of its bucket.
func convert(to *stats.Histogram, from *metrics.Float64Histogram) {
	for i, n := range from.Counts {
		if n == 0 {
			continue
		}
		low, high := from.Buckets[i], from.Buckets[i+1]
		switch {
		case math.IsInf(low, -1):
			low = high
		case math.IsInf(high, 1):
			high = low
		}
		to.Observe(time.Duration((low+high)/2*float64(time.Second)), n)
	}
}
