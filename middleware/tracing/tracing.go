package tracing

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// Options are the options of New.
type Options struct {
	// TracerProvider makes the spans; nil: otel.GetTracerProvider.
	TracerProvider trace.TracerProvider
	// SampleRatio is the share of requests, from 0 to 1, that are traced if the client
	// has no trace to continue; what the client traces is traced, and what it does not
	// is not. Default: the sampler of the TracerProvider decides about each request,
	// which costs most of a span even if it is not sampled; negative: only what clients
	// trace. The sampler is asked about sampled requests nevertheless; that of the SDK
	// agrees by default.
	SampleRatio float64
	// Public is for servers that strangers reach: each request begins a trace of its
	// own, with a link to the client's, and clients cannot have their requests sampled.
	Public bool
	// Propagator reads the client's trace from the request; nil: W3C Trace Context.
	// One for B3, Jaeger or baggage costs more. What it finds besides, such as baggage, is
	// in the context of the request, also with Public, but not in a direct.Exchange.
	Propagator propagation.TextMapPropagator
	// Route returns the route of a request that a router other than http.ServeMux and
	// package router has served, "" for none; nil: Request.Pattern. It is called when
	// the handler has returned.
	Route func(r *http.Request) string
	// Query records the part of the target after the question mark. It may contain
	// secrets.
	Query bool
	// Respond sets the field Traceresponse in responses to recorded requests, in the
	// format of traceparent.
	Respond bool
	// Observe, if not nil, is called for each recorded request when it has ended, such
	// as Exemplars.Observe of package metrics. It must not block.
	Observe func(pattern string, d time.Duration, traceID [16]byte, spanID [8]byte)
}

const scope = "github.com/chert-http/chert/middleware/tracing"

// tracing is immutable.
type tracing struct {
	Options
	tracer trace.Tracer
	late   chan struct{} // slots of goroutines that end spans; see call.Sent
}

// New returns the middleware. o may be nil. It should be outside of all middleware that
// is to be part of the span, and inside of RealIP.
func New(o *Options) func(http.Handler) http.Handler {
	t := &tracing{late: make(chan struct{}, maxLate)}
	if o != nil {
		t.Options = *o
	}
	if t.TracerProvider == nil {
		t.TracerProvider = otel.GetTracerProvider()
	}
	t.tracer = t.TracerProvider.Tracer(scope)
	return func(next http.Handler) http.Handler {
		return wrap.Handler(next,
			func(w http.ResponseWriter, r *http.Request) { t.servePlain(w, r, next) },
			t.serveDirect)
	}
}

// skips reports whether a request need not be recorded, without asking the SDK.
func (t *tracing) skips(p *parent) bool {
	switch {
	case t.SampleRatio == 0:
		return false
	case p.valid && !t.Public:
		return !p.flags.IsSampled()
	}
	return rand.Float64() >= t.SampleRatio
}

// SpanOf returns the span of a request, or one that records nothing. v is the context
// of a request, or a *direct.Exchange.
func SpanOf(v filter.Values) trace.Span {
	span, _ := v.Value(spanKey).(trace.Span)
	if span == nil {
		return trace.SpanFromContext(context.Background())
	}
	return span
}

// spanKey is the key by which package trace finds the span in a context.
var spanKey = func() any {
	var s spy
	trace.SpanFromContext(&s)
	return s.key
}()

// A spy is a context that notes the key of the value that it is asked for.
type spy struct {
	context.Context
	key any
}

func (s *spy) Value(key any) any {
	s.key = key
	return nil
}
