package middleware

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/internal/rfc/field"
)

// Condition is what a request must have for a Choice: all that the fields name. In the
// maps "*" stands for any value; the case of letters counts in values.
type Condition struct {
	// Header are fields by name, in any case. One of the lines of a field must have the
	// value.
	Header map[string]string
	// Cookie are cookies by name. One of those of the name must have the value.
	Cookie map[string]string
	// Query are parameters of the query by name. The first of the name must have the
	// value, decoded.
	Query map[string]string
	// From and FromLocal are the clients, as IPFilterOptions.Allow and AllowLocal.
	From      []netip.Prefix
	FromLocal bool
}

// Choice is a handler for the requests that have something.
type Choice struct {
	When    Condition
	Handler http.Handler
}

// Choose returns a handler that passes each request to the first choice whose condition it
// meets, and to otherwise if there is none. It supports the fast path if otherwise and all
// choices do.
//
// A client chooses its fields, cookies and query, and so its handler: Choose protects
// nothing. What only some clients may have needs protection in each handler.
//
// It is an error if a handler is nil, if a condition is empty, if a name could never be
// sent, and for a prefix as for IPFilter.
func Choose(otherwise http.Handler, choices ...Choice) (http.Handler, error) {
	c := chooser{otherwise: otherwise, choices: slices.Clone(choices)}
	d := directChooser{chooser: &c}
	d.otherwise, _ = otherwise.(direct.Handler)
	all := d.otherwise != nil
	if otherwise == nil {
		return nil, errors.New("middleware: Choose: otherwise is nil")
	}
	for i := range c.choices {
		if c.choices[i].Handler == nil {
			return nil, fmt.Errorf("middleware: Choose: choice %d: Handler is nil", i)
		}
		if err := c.choices[i].When.complete(); err != nil {
			return nil, fmt.Errorf("middleware: Choose: choice %d: %w", i, err)
		}
		when := &c.choices[i].When
		c.from = append(c.from, IPFilterOptions{Allow: when.From, AllowLocal: when.FromLocal})
		h, ok := c.choices[i].Handler.(direct.Handler)
		d.choices, all = append(d.choices, h), all && ok
	}
	if all {
		return &d, nil
	}
	return &c, nil
}

// complete checks a condition.
func (c *Condition) complete() (err error) {
	if c.From, err = plainPrefixes(c.From); err != nil {
		return fmt.Errorf("option From: %w", err)
	}
	for name := range c.Header {
		if !field.IsToken(name) {
			return fmt.Errorf("option Header: %q is no name of a field", name)
		}
		if strings.EqualFold(name, "Host") {
			return errors.New("option Header: Host is not among the fields")
		}
	}
	for name := range c.Cookie {
		if !field.IsToken(name) {
			return fmt.Errorf("option Cookie: %q is no name of a cookie", name)
		}
	}
	if len(c.Header)+len(c.Cookie)+len(c.Query)+len(c.From) == 0 && !c.FromLocal {
		return errors.New("the condition is empty")
	}
	return nil
}

// chooser is immutable.
type chooser struct {
	choices   []Choice
	from      []IPFilterOptions // of each
	otherwise http.Handler
}

// find returns the index of the choice for a request, -1 if there is none.
func (c *chooser) find(call *filter.Call) int {
	for i := range c.choices {
		from := &c.from[i]
		if (!from.restricts() || from.admits(call.RemoteAddr())) && c.choices[i].When.met(call) {
			return i
		}
	}
	return -1
}

// ServeHTTP implements http.Handler.
func (c *chooser) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var call filter.Call
	call.Wire().View(w, r)
	h := c.otherwise
	if i := c.find(&call); i >= 0 {
		h = c.choices[i].Handler
	}
	h.ServeHTTP(w, r)
}

// directChooser is a chooser whose handlers are all direct.
type directChooser struct {
	*chooser
	choices   []direct.Handler
	otherwise direct.Handler
}

// TakesAhead is what wire.TakesAhead asks.
func (d *directChooser) TakesAhead() bool { return true }

// ServeDirect implements direct.Handler.
func (d *directChooser) ServeDirect(x *direct.Exchange) bool {
	h := d.otherwise
	if i := d.find((*filter.Call)(x)); i >= 0 {
		h = d.choices[i]
	}
	return x.Wire().Admits(h) && h.ServeDirect(x)
}

func (o *IPFilterOptions) restricts() bool { return len(o.Allow) > 0 || o.AllowLocal }

// met reports whether a request of one of the clients of From meets the rest.
func (c *Condition) met(call *filter.Call) bool {
	for name, want := range c.Header {
		if !hasField(call.Fields(), name, want) {
			return false
		}
	}
	for name, want := range c.Cookie {
		if !hasCookie(call.Fields(), name, want) {
			return false
		}
	}
	for name, want := range c.Query {
		if v := (*direct.Exchange)(call).QueryValue(name); v == nil || want != "*" && string(v) != want {
			return false
		}
	}
	return true
}

// hasField looks at all lines only if there are several, which allocates.
func hasField(f wire.Fields, name, want string) bool {
	v, n := f.First(name)
	return n > 0 && (want == "*" || string(v) == want) ||
		n > 1 && anyLine(f, name, func(v []byte) bool { return string(v) == want })
}

// hasCookie reads fields Cookie (RFC 6265 section 5.4).
func hasCookie(f wire.Fields, name, want string) bool {
	line, n := f.First("Cookie")
	return n > 0 && cookieIn(line, name, want) ||
		n > 1 && anyLine(f, "Cookie", func(line []byte) bool { return cookieIn(line, name, want) })
}

// anyLine reports whether one of the lines of a field is so.
func anyLine(f wire.Fields, name string, is func([]byte) bool) (found bool) {
	for k, v := range f.All() {
		found = found || strings.EqualFold(string(k), name) && is(v)
	}
	return found
}

func cookieIn(line []byte, name, want string) bool {
	for len(line) > 0 {
		var pair []byte
		pair, line, _ = bytes.Cut(line, []byte{';'})
		k, v, ok := bytes.Cut(bytes.TrimSpace(pair), []byte{'='})
		if ok && string(k) == name && (want == "*" || string(v) == want) {
			return true
		}
	}
	return false
}
