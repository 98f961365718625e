package middleware

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/rfc/field"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// HeadersOptions are the options of Headers.
type HeadersOptions struct {
	// Set are the fields that every response gets, by name, instead of those that the
	// handler sets under the name. Vary and Set-Cookie are added to the handler's: without
	// its Vary, a cache could give a client what was made for another. "" removes the
	// field.
	Set map[string]string
	// Rules apply after Set, in order.
	Rules []HeaderRule
}

// A HeaderRule changes the fields of some responses: it removes fields, then sets, then
// adds.
type HeaderRule struct {
	// Status are the statuses that the rule is for: from 200 to 599, or the first digit of
	// a class, as 5 for 500 to 599. If it is empty, the rule is for every response.
	Status []int
	// Set is as in HeadersOptions.
	Set map[string]string
	// Add are values that are added to those that the response has.
	Add map[string][]string
	// Remove are names of fields that the response does not have.
	Remove []string
}

// Headers sets header fields of every response, also of errors and redirects, and of the
// refusals of middleware inside of it. The handler cannot override them; SecurityHeaders
// sets fields that it can. A 304 gets no Content-Type.
//
// It is an error if a name is no field name or one of those that frame the message, such as
// Content-Length, Content-Encoding and Connection, if a value has control characters, if
// Content-Type would be removed or added, and if a status is none.
func Headers(o *HeadersOptions) (func(http.Handler) http.Handler, error) {
	h := &headers{key: "headers " + strconv.FormatUint(headersMade.Add(1), 10)}
	h.later = h.direct
	opt := options(o)
	first, err := newHeaderRule(&HeaderRule{Set: opt.Set})
	if err != nil {
		return nil, fmt.Errorf("middleware: Headers: %w", err)
	}
	h.rules = append(h.rules, first...)
	for i := range opt.Rules {
		rules, err := newHeaderRule(&opt.Rules[i])
		if err != nil {
			return nil, fmt.Errorf("middleware: Headers: Rules[%d]: %w", i, err)
		}
		h.rules = append(h.rules, rules...)
	}
	return h.wrap, nil
}

// A headerRule is one change of one field.
type headerRule struct {
	wire.Field // with a canonical name; the value "" removes it
	add        bool
	exact      []int // nil with classes: every status
	classes    uint8 // a bit for each first digit
}

// newHeaderRule checks a rule and splits it up.
func newHeaderRule(r *HeaderRule) (all []headerRule, err error) {
	var base headerRule
	for _, status := range r.Status {
		switch {
		case 2 <= status && status <= 5:
			base.classes |= 1 << status
		case 200 <= status && status <= 599:
			base.exact = append(base.exact, status)
		default:
			return nil, fmt.Errorf("the status %d is neither from 200 to 599 nor a class, from 2 to 5", status)
		}
	}
	change := func(option, name, value string, add bool) error {
		check := field.CheckSet
		if add {
			check = field.CheckAdd
		}
		if err := check(name, value); err != nil {
			return fmt.Errorf("%s: the field %q %w", option, name, err)
		}
		f := base
		f.Name, f.Value = http.CanonicalHeaderKey(name), value
		f.add = add || value != "" && listed(f.Name)
		all = append(all, f)
		return nil
	}
	for _, name := range slices.Sorted(slices.Values(r.Remove)) {
		if err := change("Remove", name, "", false); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Set)) {
		if err := change("Set", name, r.Set[name], false); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Add)) {
		for _, value := range r.Add[name] {
			if err := change("Add", name, value, true); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// is reports whether the rule is for a status.
func (r *headerRule) is(status int) bool {
	return r.exact == nil && r.classes == 0 || status < 800 && r.classes&(1<<(status/100)) != 0 ||
		slices.Contains(r.exact, status)
}

// headersMade numbers the keys of Derive.
var headersMade atomic.Uint64

// headers is immutable.
type headers struct {
	rules []headerRule
	key   string
	later func(x *wire.Exchange) // direct, as a value allocated once
}

func (h *headers) wrap(next http.Handler) http.Handler {
	if len(h.rules) == 0 {
		return next
	}
	return wrap.Handler(next,
		func(w http.ResponseWriter, r *http.Request) {
			s := &setting{headers: h}
			s.Serve(next, w, r, s)
		},
		func(x *direct.Exchange, next direct.Handler) bool {
			if !next.ServeDirect(x) {
				return false
			}
			h.direct(x.Wire())
			return true
		})
}

// direct sets the fields of a response that is not sent yet.
func (h *headers) direct(x *wire.Exchange) {
	if x.Plan() != nil {
		x.Later(h.later)
		return
	}
	ready, status := x.Ready(), x.Status()
	if kept := h.addedTo(x); kept != nil {
		x.SendInstead(ready.With(func(head http.Header) {
			maps.Copy(head, kept)
			h.apply(head, status)
		}))
	} else if ready != nil {
		x.SendInstead(ready.Derive(h.key, func(r *wire.Response) *wire.Response {
			return r.With(func(head http.Header) { h.apply(head, r.Status()) })
		}))
	}
	for i := range h.rules {
		f := &h.rules[i]
		switch {
		case !f.is(status):
		case f.Value == "":
			x.DelHeader(f.Name) // of outer middleware too
		case ready != nil:
		case f.add:
			x.AddHeader(f.Name, f.Value)
		default:
			x.SetHeader(f.Name, f.Value)
		}
	}
}

// addedTo returns the fields of outer middleware that a ready Response does not have and
// that values are added to; nil if there are none. Those are of one request: what is
// derived of the Response cannot have them, and would replace them.
func (h *headers) addedTo(x *wire.Exchange) (kept http.Header) {
	ready := x.Ready()
	if ready == nil || !x.HasKept() {
		return nil
	}
	for i := range h.rules {
		f := &h.rules[i]
		if !f.add || listed(f.Name) || !f.is(x.Status()) || x.GetHeader(f.Name) == "" || kept[f.Name] != nil ||
			ready.Header()[f.Name] != nil {
			continue
		}
		if kept == nil {
			kept = make(http.Header)
		}
		for g := range x.ResponseFields {
			if g.Name == f.Name {
				kept[f.Name] = append(kept[f.Name], g.Value)
			}
		}
	}
	return kept
}

// apply sets the fields in the header of a response on the ordinary path, or of one that
// was prepared.
func (h *headers) apply(head http.Header, status int) {
	for i := range h.rules {
		f := &h.rules[i]
		switch {
		case !f.is(status):
		case f.Value == "":
			delete(head, f.Name)
		case status == http.StatusNotModified && f.Name == "Content-Type":
		case f.add:
			head[f.Name] = append(slices.Clip(head[f.Name]), f.Value)
		default:
			head[f.Name] = []string{f.Value}
		}
	}
}

// listed reports whether a field is added to those of its name.
func listed(name string) bool { return name == "Vary" || name == "Set-Cookie" }

// setting is a response on the ordinary path.
type setting struct {
	wrap.Writer
	*headers
	began bool
}

// WriteHeader implements wrap.Hook.
func (s *setting) WriteHeader(status int) {
	s.began = true
	s.apply(s.Header(), status)
	s.PassHead(status)
}

// Write implements wrap.Hook.
func (s *setting) Write(p []byte) (int, error) { return s.Next().Write(p) }

// Flush implements wrap.Hook.
func (s *setting) Flush() error { return nil }

// ReadFrom implements wrap.Hook.
func (s *setting) ReadFrom(int64) bool { return true }

// End implements wrap.Hook. A handler that has written nothing responds with 200.
func (s *setting) End(returned bool) {
	if returned && !s.began && !s.Hijacked() {
		s.apply(s.Header(), http.StatusOK)
	}
}
