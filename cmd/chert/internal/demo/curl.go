package demo

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// At is the address of a server.
type At struct {
	Host   string // host:port
	Socket string // path of a unix socket, "" for TCP
}

// curl returns the beginning of a command, and the URL up to the path.
func (a At) curl() (command, url string) {
	if a.Socket == "" {
		return "curl", "http://" + a.Host
	}
	return "curl --unix-socket '" + strings.ReplaceAll(a.Socket, "'", `'\''`) + "'", "http://localhost"
}

// orOf returns a, or the address at which the client of r has found the server. The latter becomes part of commands
// that people paste into shells, so it must be a name or an address and nothing else.
func (a At) orOf(r *http.Request) At {
	if a.Socket != "" || !plainHost(r.Host) {
		return a
	}
	return At{Host: r.Host}
}

// plainHost reports whether s is a name or an address, with a port or without.
func plainHost(s string) bool {
	name := s
	if host, port, err := net.SplitHostPort(s); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return false
		}
		name = host
	}
	if strings.HasPrefix(s, "[") { // only an address: curl would parse it as a range
		if name == s {
			name = strings.TrimSuffix(s[1:], "]")
		}
		addr, err := netip.ParseAddr(name)
		return err == nil && strings.Contains(s, "]") && addr.Is6() && addr.Zone() == ""
	}
	for i := range len(name) {
		c := name[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (c < '0' || '9' < c) && strings.IndexByte("-._", c) < 0 {
			return false
		}
	}
	return name != "" && name[0] != '-' && len(name) < 254
}

// Tokens are used in the commands: tokens, or shell variables that contain them. If Bearer is "", its command is left
// out.
type Tokens struct{ Bearer, JWT string }

// A Command is something to try with curl.
type Command struct {
	Status int // of the last response
	Shows  string
	Curl   string // for a shell
	Try    *Try   // nil: not available on a page
}

// Try is the request that a page sends instead of Curl.
type Try struct{ Method, Path, Auth, Body string }

// Commands returns all commands. They can be run in any order.
func Commands(at At, t Tokens) (all []Command) {
	curl, url := at.curl()
	auth := func(token string) string { return `-H "Authorization: Bearer ` + token + `" ` }
	add := func(status int, shows, pipe, args, path string, try *Try) {
		target := url + path
		if strings.ContainsAny(path, "?[") {
			target = `"` + target + `"`
		}
		all = append(all, Command{status, shows, pipe + curl + " -i " + args + target, try})
	}
	get := func(path string) *Try { return &Try{Method: http.MethodGet, Path: path} }

	add(200, "served from the event loop", "", "", "/ping", get("/ping"))
	add(200, "what was sent", "", "-d hello ", "/echo", &Try{http.MethodPost, "/echo", "", "hello"})
	if t.Bearer != "" {
		add(200, "with the token of this start", "", auth(t.Bearer), "/users/42",
			&Try{http.MethodGet, "/users/42", t.Bearer, ""})
	}
	add(200, "a JSON Web Token, good for a day", "", "-X POST ", "/token",
		&Try{Method: http.MethodPost, Path: "/token"})
	add(200, "with a JSON Web Token", "", auth(t.JWT), "/users/7", &Try{http.MethodGet, "/users/7", t.JWT, ""})
	add(401, "without a token: WWW-Authenticate", "", "", "/users/42", get("/users/42"))
	add(401, "with a wrong one", "", auth("wrong"), "/users/42", &Try{http.MethodGet, "/users/42", "wrong", ""})
	add(404, "a user that does not exist", "", auth(t.JWT), "/users/0", &Try{http.MethodGet, "/users/0", t.JWT, ""})
	add(404, "a path that is not there", "", "", "/nowhere", get("/nowhere"))
	add(405, "another method: Allow has those that there are", "", "-X DELETE ", "/ping",
		&Try{Method: http.MethodDelete, Path: "/ping"})
	add(204, "the same asked beforehand", "", "-X OPTIONS ", "/echo", &Try{Method: http.MethodOptions, Path: "/echo"})
	add(200, "a query of 50 ms: the event loop does not wait; compressed", "", "--compressed ", "/db", get("/db"))
	add(200, "Server-Sent Events: a clock; without n it goes on", "", "-N ", "/clock?n=3", nil)
	add(204, "an event for everybody who listens to /feed", "", "-d hello ", "/feed",
		&Try{http.MethodPost, "/feed", "", "hello"})
	add(200, "an upload, counted as it comes", "head -c 1000000 /dev/zero | ", "-T - ", "/upload", nil)
	add(413, "100 MiB announced: refused before they are sent", "head -c 104857600 /dev/zero | ", "--data-binary @- ",
		"/upload", nil)
	add(200, "a folder, listed", "", "", "/files/", get("/files/"))
	add(206, "a part of a file", "", "-r 0-25 ", "/files/chert.txt", nil)
	add(304, "a file that the client has", "", `-H "If-None-Match: *" `, "/files/chert.txt", nil)
	add(429, fmt.Sprintf("more than %d a minute: Retry-After", limitedRate), "",
		"", fmt.Sprintf("/limited?n=[1-%d]", limitedRate+1), get("/limited"))
	add(500, "a handler that panics; the server does not", "", "", "/panic", get("/panic"))
	return all
}

// Text formats the commands for a terminal, two lines for each.
func Text(commands []Command) string {
	var b strings.Builder
	for i, c := range commands {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "  # %d: %s\n  %s\n", c.Status, c.Shows, c.Curl)
	}
	return b.String()
}

// TokenCommand returns a command that prints a JSON Web Token, for a shell variable.
func TokenCommand(at At) string {
	curl, url := at.curl()
	return curl + " -s -X POST " + url + "/token"
}
