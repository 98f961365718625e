package exchange

import (
	"fmt"
	"strings"
)

// Request is a request to a server. A zero field is omitted.
type Request struct {
	Method   string
	Path     string // with the query
	Type     string // Content-Type
	Body     string
	Close    bool // with "Connection: close"
	Pipeline int  // how many are sent at once before the first answer is read; 0 is 1
	Fields   int  // how many more header fields it has, which mean nothing
}

// Field is the name and the value of one of the Fields, counted from 0.
func (Request) Field(i int) (name, value string) {
	return fmt.Sprintf("X-Field-%d", i), "a value of some length"
}

// Get is a GET of a path.
func Get(path string) Request { return Request{Method: "GET", Path: path} }

// Depth is how many requests are under way at once on one connection.
func (r Request) Depth() int { return max(1, r.Pipeline) }

// Text is one request as it is sent to host.
func (r Request) Text(host string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.Method, r.Path, host)
	if r.Type != "" {
		fmt.Fprintf(&b, "Content-Type: %s\r\n", r.Type)
	}
	if r.Body != "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(r.Body))
	}
	for i := range r.Fields {
		name, value := r.Field(i)
		fmt.Fprintf(&b, "%s: %s\r\n", name, value)
	}
	if r.Close {
		b.WriteString("Connection: close\r\n")
	}
	b.WriteString("\r\n")
	b.WriteString(r.Body)
	return b.String()
}
