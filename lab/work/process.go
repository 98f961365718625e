package work

import (
	"encoding/json"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/chert-http/chert/lab/measure"
)

// ProcessJSON is what this process says of itself, a measure.Process.
func ProcessJSON() ([]byte, error) {
	resident, err := measure.Resident(os.Getpid())
	if err != nil {
		return nil, err
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return json.Marshal(measure.Process{
		Goroutines: runtime.NumGoroutine(),
		HeapInUse:  int64(m.HeapInuse),
		StackInUse: int64(m.StackInuse),
		Resident:   resident,

		Allocated:   int64(m.Mallocs),
		Collections: int64(m.NumGC),
	})
}

// Collect frees what can be freed. FreeOSMemory collects once more, and it takes two collections to empty a sync.Pool.
func Collect() {
	runtime.GC()
	debug.FreeOSMemory()
}
