package report

import (
	"fmt"
	"io"
)

// State is a server's memory at one moment.
type State struct {
	Resident   int64 `json:"resident_bytes"`
	HeapInUse  int64 `json:"heap_in_use_bytes"`
	Goroutines int   `json:"goroutines"`
}

// Held is what one server holds for idle connections.
type Held struct {
	Server string `json:"server"`
	Before State  `json:"before"` // warmed up, no connection open, after a garbage collection
	Grown  State  `json:"grown"`  // all open and idle, before a garbage collection is forced
	After  State  `json:"after"`  // and after it
}

// Idle is one table: servers that hold the same number of idle connections.
type Idle struct {
	Title       string `json:"title"`
	Connections int    `json:"connections"`
	Servers     []Held `json:"servers"`
}

// PerConnection is what one connection costs.
type PerConnection struct {
	Server     string  `json:"server"`
	Grown      float64 `json:"grown_bytes"` // resident, before a garbage collection is forced
	Resident   float64 `json:"resident_bytes"`
	HeapInUse  float64 `json:"heap_in_use_bytes"`
	Goroutines float64 `json:"goroutines"`
}

// PerConnection divides the growth of each server by the number of connections.
func (i Idle) PerConnection() []PerConnection {
	var all []PerConnection
	for _, s := range i.Servers {
		n := float64(i.Connections)
		all = append(all, PerConnection{
			Server:     s.Server,
			Grown:      quotient(float64(s.Grown.Resident-s.Before.Resident), n),
			Resident:   quotient(float64(s.After.Resident-s.Before.Resident), n),
			HeapInUse:  quotient(float64(s.After.HeapInUse-s.Before.HeapInUse), n),
			Goroutines: quotient(float64(s.After.Goroutines-s.Before.Goroutines), n),
		})
	}
	return all
}

// Text writes the table.
func (i Idle) Text(w io.Writer) {
	fmt.Fprintf(w, "%s\nRSS: resident memory of the server, before a garbage collection is forced (grown) and after it.\n\n", i.Title)
	var t table
	t.row("server", "RSS grown/conn", "RSS bytes/conn", "heap bytes/conn", "goroutines/conn", "RSS before", "RSS with all")
	for k, p := range i.PerConnection() {
		s := i.Servers[k]
		t.row(p.Server, f0(p.Grown), f0(p.Resident), f0(p.HeapInUse), f2(p.Goroutines), mib(s.Before.Resident), mib(s.After.Resident))
	}
	t.write(w)
}

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
