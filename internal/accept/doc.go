// Package accept accepts connections for a server and gives each to its engine: a set of
// event loops or a goroutine. It refuses those beyond the limits, and looks for idle ones
// that give way.
package accept

// It knows the server by the functions of Server, and HTTP by h1.Session alone, which it
// begins. Only the root imports it. docs/adr/0008-listening-and-accepting.md and
// 0032-idle-connections-give-way.md have the reasons.
