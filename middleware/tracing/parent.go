package tracing

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/trace"

	"github.com/chert-http/chert/direct/wire"
)

const (
	parentField = "Traceparent"
	stateField  = "Tracestate"
)

// A parent is the span of the client that a request belongs to.
type parent struct {
	valid   bool
	traceID trace.TraceID
	spanID  trace.SpanID
	flags   trace.TraceFlags
	lines   []string           // of tracestate
	other   *trace.SpanContext // instead, from Options.Propagator
}

// parentOf reads the fields of a request.
func (t *tracing) parentOf(f wire.Fields) (p parent) {
	if t.Propagator != nil {
		_, p = t.extract(context.Background(), f)
		return p
	}
	v, n := f.First(parentField)
	if n != 1 {
		// W3C Trace Context section 3.2: one line. Of several, one may be an
		// attacker's.
		return p
	}
	if p.parse(v); !p.valid {
		return p
	}
	switch v, n := f.First(stateField); {
	case n == 1:
		p.lines = []string{string(v)}
	case n > 1: // section 3.3: they are one list
		p.lines = allLines(f, stateField)
	}
	return p
}

// extract has Options.Propagator read the fields of a request, and returns ctx with all that it
// has found, such as baggage.
func (t *tracing) extract(ctx context.Context, f wire.Fields) (context.Context, parent) {
	found := t.Propagator.Extract(ctx, carrier{f})
	sc := trace.SpanContextFromContext(found)
	if sc.IsValid() && sc.Equal(trace.SpanContextFromContext(ctx)) { // perhaps only the one that ctx had
		sc = trace.SpanContextFromContext(t.Propagator.Extract(context.Background(), carrier{f}))
	}
	if !sc.IsValid() {
		return found, parent{}
	}
	return found, parent{valid: true, flags: sc.TraceFlags(), other: &sc}
}

func allLines(f wire.Fields, field string) (lines []string) {
	for name, v := range f.All() {
		if strings.EqualFold(string(name), field) {
			lines = append(lines, string(v))
		}
	}
	return lines
}

// plainParent is parentOf for the ordinary path, without a Propagator.
func (t *tracing) plainParent(h http.Header) (p parent) {
	if v := h[parentField]; len(v) == 1 {
		if p.parse([]byte(v[0])); p.valid {
			p.lines = h[stateField]
		}
	}
	return p
}

// lengthOf0 is that of a traceparent of version 00, which others begin with.
const lengthOf0 = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")

// parse reads a traceparent (W3C Trace Context section 3.2.2).
func (p *parent) parse(v []byte) {
	if len(v) < lengthOf0 || v[2] != '-' || v[35] != '-' || v[52] != '-' {
		return
	}
	var version, flags [1]byte
	if !unhex(version[:], v[:2]) || !unhex(p.traceID[:], v[3:35]) || !unhex(p.spanID[:], v[36:52]) || !unhex(flags[:], v[53:55]) {
		return
	}
	// Section 3.2.2.1: ff is invalid. Section 4.3: of a later version the parts of 00 are
	// used, if a dash follows them or nothing.
	switch {
	case version[0] == 0xff, version[0] == 0 && len(v) != lengthOf0, len(v) > lengthOf0 && v[lengthOf0] != '-':
		return
	}
	// Section 3.2.2.5: flags that are not known are not passed on.
	p.flags = trace.TraceFlags(flags[0]) & (trace.FlagsSampled | trace.FlagsRandom)
	p.valid = p.traceID.IsValid() && p.spanID.IsValid()
}

// unhex decodes lower-case hexadecimal. It does not accept upper case: section
// 3.2.2.3.
func unhex(to, from []byte) bool {
	for i := range to {
		var b byte
		for _, c := range from[2*i : 2*i+2] {
			switch {
			case '0' <= c && c <= '9':
				b = b<<4 | (c - '0')
			case 'a' <= c && c <= 'f':
				b = b<<4 | (c - 'a' + 10)
			default:
				return false
			}
		}
		to[i] = b
	}
	return true
}

// spanContext returns p for the SDK and for handlers.
func (p *parent) spanContext() trace.SpanContext {
	if p.other != nil {
		return *p.other
	}
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: p.traceID, SpanID: p.spanID, TraceFlags: p.flags, TraceState: state(p.lines), Remote: true,
	})
}

// state parses the lines of tracestate. An invalid one is dropped and does not affect
// traceparent (section 3.3).
func state(lines []string) trace.TraceState {
	var members []string
	for _, line := range lines {
		for m := range strings.SplitSeq(line, ",") {
			// Section 3.3.1.1: empty members are allowed.
			if m = strings.Trim(m, " \t"); m != "" {
				members = append(members, m)
			}
		}
	}
	s, err := trace.ParseTraceState(strings.Join(members, ","))
	if err != nil {
		return trace.TraceState{}
	}
	return s
}

// An unsampled is the context of a request that is not recorded, and the copy of the
// request that has it: one allocation. What its handler calls must know that, or would
// begin traces of its own, so it has a span context; that is made when it is asked for.
type unsampled struct {
	context.Context
	request http.Request
	parent  *parent // nil: a trace begins here
	once    sync.Once
	span    trace.Span
}

// unsampledFor returns the one of r, whose context is ctx.
func unsampledFor(ctx context.Context, r *http.Request, p *parent) *unsampled {
	u := &unsampled{Context: ctx}
	if p.valid {
		own := *p // so that p need not be allocated
		u.parent = &own
	}
	u.request = *r.WithContext(u) // which is inlined, so this is the only copy that is allocated
	return u
}

// Value implements context.Context.
func (u *unsampled) Value(key any) any {
	if key != spanKey {
		return u.Context.Value(key)
	}
	u.once.Do(u.begin)
	return u.span
}

func (u *unsampled) begin() {
	sc := trace.SpanContext{}
	if u.parent != nil {
		sc = u.parent.spanContext()
	} else {
		sc = newRoot()
	}
	u.span = trace.SpanFromContext(trace.ContextWithSpanContext(context.Background(), sc))
}

// newRoot returns a span context that is not sampled and begins a trace.
func newRoot() trace.SpanContext {
	var c trace.SpanContextConfig
	binary.LittleEndian.PutUint64(c.TraceID[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(c.TraceID[8:], rand.Uint64()|1) // never zero
	binary.LittleEndian.PutUint64(c.SpanID[:], rand.Uint64()|1)
	return trace.NewSpanContext(c)
}

// A carrier is a propagation.TextMapCarrier of a request.
type carrier struct{ f wire.Fields }

// Get implements propagation.TextMapCarrier.
func (c carrier) Get(key string) string { return string(c.f.Get(key)) }

// Values implements propagation.ValuesGetter.
func (c carrier) Values(key string) []string { return allLines(c.f, key) }

// Set implements propagation.TextMapCarrier. Requests are only read.
func (c carrier) Set(key, value string) {}

// Keys implements propagation.TextMapCarrier.
func (c carrier) Keys() (keys []string) {
	for name := range c.f.All() {
		keys = append(keys, string(name))
	}
	return keys
}
