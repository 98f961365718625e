package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/chert-http/chert/lab/measure"
)

// handler is written as one would for net/http, and is the same for all servers.
func handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", hello)
	mux.HandleFunc("GET /debug/stats", stats)
	mux.HandleFunc("GET /debug/gc", collect)
	return mux
}

func hello(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	io.WriteString(w, "Hello, World!")
}

func stats(w http.ResponseWriter, _ *http.Request) {
	resident, err := measure.Resident(os.Getpid())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(measure.Process{
		Goroutines: runtime.NumGoroutine(),
		HeapInUse:  int64(m.HeapInuse),
		StackInUse: int64(m.StackInuse),
		Resident:   resident,
	})
}

// collect frees what can be freed. FreeOSMemory collects once more, and it takes two collections to empty a sync.Pool.
func collect(http.ResponseWriter, *http.Request) {
	runtime.GC()
	debug.FreeOSMemory()
}
