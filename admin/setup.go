package admin

import (
	"net/http"
	"time"
)

// Setup is what a server has been set up to do: the page shows it, and /setup has it as
// JSON.
type Setup struct {
	// Addrs are the addresses that the server listens on.
	Addrs []string
	// Config is where the configuration is, such as a file; Loaded is when it was read.
	Config string    `json:",omitempty"`
	Loaded time.Time `json:",omitzero"`
	// Reload is the last attempt to replace it; nil if there was none.
	Reload *Reload `json:",omitempty"`
	// Sites are in the order of the configuration. The page shows the first 100.
	Sites []Site `json:",omitempty"`
}

// Reload is an attempt to replace a configuration.
type Reload struct {
	At time.Time
	// Error is why it failed, and the configuration from before stays; "" if it did not.
	Error string `json:",omitempty"`
}

// Site is what is served for some hosts.
type Site struct {
	Hosts []string
	// What is served, in a few words.
	What string
	// Certificate is where its certificate comes from, in a few words; "" without TLS.
	Certificate string `json:",omitempty"`
	// Expires is when that expires: the earliest of several, zero if there is none yet.
	Expires time.Time `json:",omitzero"`
}

// setup sends what Options.Setup returns.
func (h *handler) setup(w http.ResponseWriter, _ *http.Request) { sendJSON(w, h.current()) }

func (h *handler) current() Setup {
	if h.opts.Setup == nil {
		return Setup{}
	}
	return h.opts.Setup()
}
