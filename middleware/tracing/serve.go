package tracing

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// Events of a span.
const (
	startEvent      = "handler.start"
	endEvent        = "handler.end"
	incompleteEvent = "response.incomplete"
)

const (
	// maxLate is how many spans may be ended at the same time off the handlers'
	// goroutines.
	maxLate = 64
	// maxStack is how much of a panic's stack is recorded, in bytes.
	maxStack = 8 << 10
)

// A call is a request that is recorded, and the wire.Watcher of its response.
type call struct {
	seen    wrap.Writer // unless direct
	t       *tracing
	span    trace.Span
	method  string
	pattern string
	began   time.Time
	ended   time.Time // when the handler had returned
	failed  bool      // the handler has panicked
	kept    bool
}

func (t *tracing) servePlain(w http.ResponseWriter, r *http.Request, next http.Handler) {
	ctx, p := r.Context(), parent{}
	if t.Propagator != nil {
		ctx, p = t.extract(ctx, wire.FieldsOf(r.Header))
	} else {
		p = t.plainParent(r.Header)
	}
	if t.skips(&p) {
		if t.Public {
			p = parent{}
		}
		wrap.Serve(next, w, r, &unsampledFor(ctx, r, &p).request)
		return
	}
	c := &call{t: t, method: r.Method}
	began, ok := wire.Arrived(w)
	if !ok {
		began = time.Now()
	}
	ctx = c.start(ctx, &p, began, plainAttributes(r, t.Query))
	inner := r.WithContext(ctx)
	if !c.span.IsRecording() { // the SDK's sampler has decided
		wrap.Serve(next, w, r, inner)
		return
	}
	if t.Respond {
		w.Header()[responseField] = []string{traceparent(c.span)}
	}
	returned := false
	defer func() {
		var v any
		if !returned {
			v = recover() // nil after runtime.Goexit
		}
		c.returned(v, !returned)
		if t.Route != nil {
			c.route(t.Route(inner))
		} else {
			c.route(inner.Pattern)
		}
		c.client(inner.RemoteAddr)
		if c.seen.Hijacked() || !wire.Watch(w, c) {
			c.Sent(delivered(&c.seen, r, !returned))
		}
		if v != nil {
			panic(v)
		}
	}()
	wrap.Serve(next, c.seen.Init(w, nil), r, inner)
	returned = true
}

// delivered returns the Delivery of a response as far as it is known when its handler
// has returned.
func delivered(w *wrap.Writer, r *http.Request, panicked bool) wire.Delivery {
	d := wire.Delivery{Status: w.Status(), Body: w.Written(), Complete: !panicked}
	switch {
	case w.Hijacked():
		if d.Complete = true; d.Status == 0 {
			d.Status = http.StatusSwitchingProtocols
		}
	case d.Status == 0 && !panicked:
		d.Status = http.StatusOK
	}
	if r.Method == http.MethodHead || d.Status == http.StatusNotModified || d.Status == http.StatusNoContent {
		d.Body = 0 // what was written was not sent
	}
	return d
}

func (t *tracing) serveDirect(x *direct.Exchange, next direct.Handler) bool {
	e := x.Wire()
	p := t.parentOf(e.Fields())
	if t.skips(&p) {
		return next.ServeDirect(x) // it makes no calls that would need a context
	}
	c := &call{t: t, method: e.Method()}
	began := time.Now()
	if at := e.Time(); at != 0 {
		began = began.Add(at - wire.Clock())
	}
	c.start(context.Background(), &p, began, directAttributes(e, t.Query))
	if !c.span.IsRecording() {
		return next.ServeDirect(x)
	}
	e.SetValue(spanKey, c.span)
	if t.Respond {
		e.Keep(responseName, traceparent(c.span))
	}
	answered, returned := false, false
	defer func() {
		if returned && !answered {
			return // the ordinary path makes another span; this one is dropped
		}
		var v any
		if !returned {
			v = recover() // nil after runtime.Goexit
		}
		c.returned(v, !returned)
		c.route(e.Pattern())
		c.client(e.RemoteAddr())
		e.Watch(c)
		if v != nil {
			panic(v)
		}
	}()
	answered = next.ServeDirect(x)
	returned = true
	return answered
}

// start starts the span.
func (c *call) start(ctx context.Context, p *parent, began time.Time, attrs []attribute.KeyValue) context.Context {
	c.began = began
	o := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(began), trace.WithAttributes(attrs...),
	}
	switch {
	case c.t.Public:
		o = append(o, trace.WithNewRoot())
		if p.valid {
			o = append(o, trace.WithLinks(trace.Link{SpanContext: p.spanContext()}))
		}
	case p.valid:
		ctx = trace.ContextWithRemoteSpanContext(ctx, p.spanContext())
	}
	ctx, c.span = c.t.tracer.Start(ctx, nameOf(c.method), o...)
	if c.span.IsRecording() {
		c.span.AddEvent(startEvent)
	}
	return ctx
}

// returned notes that the handler has returned, or has panicked with v.
func (c *call) returned(v any, panicked bool) {
	c.ended, c.failed = time.Now(), panicked
	c.span.AddEvent(endEvent, trace.WithTimestamp(c.ended))
	switch {
	case !panicked:
		return
	case v == nil:
		c.span.SetStatus(codes.Error, "the handler has ended its goroutine")
		c.span.SetAttributes(semconv.ErrorTypeKey.String("runtime.Goexit"))
		return
	case v == http.ErrAbortHandler:
		c.span.SetStatus(codes.Error, "aborted by the handler")
		c.span.SetAttributes(semconv.ErrorTypeKey.String("http.ErrAbortHandler"))
		return
	}
	stack := debug.Stack()
	kind := fmt.Sprintf("%T", v)
	c.span.AddEvent(semconv.ExceptionEventName, trace.WithTimestamp(c.ended), trace.WithAttributes(
		semconv.ExceptionType(kind), semconv.ExceptionMessage(cut(fmt.Sprint(v))),
		semconv.ExceptionStacktrace(string(stack[:min(len(stack), maxStack)]))))
	c.span.SetStatus(codes.Error, "panic")
	c.span.SetAttributes(semconv.ErrorTypeKey.String(kind))
}

// route notes the pattern of the route, which is known when a router has run.
func (c *call) route(pattern string) {
	c.pattern = pattern
	if path := pathOf(pattern); path != "" {
		c.span.SetName(nameOf(c.method) + " " + path)
		c.span.SetAttributes(semconv.HTTPRoute(path))
	}
}

// client notes the client's address as RealIP may have found it.
func (c *call) client(addr string) {
	if host, _ := splitPort(addr); host != "" {
		c.span.SetAttributes(semconv.ClientAddress(cut(host)))
	}
}

// Keep implements wire.Watcher. The call has nothing of the request but strings.
func (c *call) Keep() { c.kept = true }

// Sent implements wire.Watcher.
func (c *call) Sent(d wire.Delivery) {
	at := time.Now()
	if !c.kept {
		c.end(d, at)
		return
	}
	// This may be an event loop, and processors of spans may block, though that of the
	// SDK for production does not.
	select {
	case c.t.late <- struct{}{}:
		go func() {
			defer func() { <-c.t.late }()
			c.end(d, at)
		}()
	default: // the span is lost, as it is when the SDK's queue is full
	}
}

// end ends the span.
func (c *call) end(d wire.Delivery, at time.Time) {
	if d.Status != 0 {
		c.span.SetAttributes(semconv.HTTPResponseStatusCode(d.Status), semconv.HTTPResponseBodySize(int(d.Body)))
	}
	if d.Status >= 500 && !c.failed {
		c.span.SetStatus(codes.Error, "")
		c.span.SetAttributes(semconv.ErrorTypeKey.String(fmt.Sprint(d.Status)))
	}
	if !d.Complete {
		c.span.AddEvent(incompleteEvent, trace.WithTimestamp(at))
	}
	c.span.End(trace.WithTimestamp(at))
	if sc := c.span.SpanContext(); c.t.Observe != nil && sc.IsSampled() {
		c.t.Observe(c.pattern, at.Sub(c.began), sc.TraceID(), sc.SpanID())
	}
}
