package tracing

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
)

// discard is a response writer that keeps nothing.
type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

func benchRequest() *http.Request {
	r := httptest.NewRequest("GET", "/hello", nil)
	r.Header.Set("User-Agent", "curl/8.0")
	r.Header.Set("Accept", "*/*")
	return r
}

var plainHello = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") })

// The same handler without tracing, with this package and with otelhttp; without metrics
// and an exporter, so that the difference is the middleware and the SDK.
func BenchmarkPlain(b *testing.B) {
	ratios := map[string]float64{"1%": 0.01, "100%": 1}
	run := func(name string, h http.Handler) {
		b.Run(name, func(b *testing.B) {
			w, r := discard{http.Header{}}, benchRequest()
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
	run("none", plainHello)
	for _, name := range []string{"1%", "100%"} {
		// An SDK with this ratio, as otelhttp needs it, and one that leaves roots to the
		// middleware.
		tp := sdk.NewTracerProvider(sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(ratios[name]))))
		own := sdk.NewTracerProvider()
		run("chert/"+name, New(&Options{TracerProvider: own, SampleRatio: ratios[name]})(plainHello))
		run("chert, SDK decides/"+name, New(&Options{TracerProvider: tp})(plainHello))
		run("otelhttp/"+name, otelhttp.NewHandler(plainHello, "hello", otelhttp.WithTracerProvider(tp),
			otelhttp.WithMeterProvider(noopmetric.NewMeterProvider()), otelhttp.WithPropagators(propagation.TraceContext{})))
	}
}

func BenchmarkDirect(b *testing.B) {
	for _, ratio := range []float64{-1, 0.01, 1} {
		b.Run(map[float64]string{-1: "0%", 0.01: "1%", 1: "100%"}[ratio], func(b *testing.B) {
			h := New(&Options{TracerProvider: sdk.NewTracerProvider(), SampleRatio: ratio})(hello).(direct.Handler)
			var x direct.Exchange
			fields := wire.FieldsOf(benchRequest().Header)
			b.ReportAllocs()
			for b.Loop() {
				x.Wire().Reset(wire.Request{Method: "GET", Path: []byte("/hello"), Fields: fields})
				h.ServeDirect(&x)
				if w := x.Wire().TakeWatcher(); w != nil {
					w.Sent(wire.Delivery{Status: 200, Body: 5, Complete: true})
				}
			}
		})
	}
}

// What is not sampled costs one allocation, with a context and a copy of the request,
// another one for what the client has sent of its trace, and on the fast path nothing.
func TestAllocations(t *testing.T) {
	traced := New(&Options{TracerProvider: sdk.NewTracerProvider(), SampleRatio: -1})
	unsampled := benchRequest()
	unsampled.Header.Set("Traceparent", valid01[:53]+"00")
	unsampled.Header.Set("Tracestate", "a=1")
	w := discard{http.Header{}}
	empty := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for r, want := range map[*http.Request]float64{benchRequest(): 1, unsampled: 2} {
		h := traced(empty)
		if n := testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) }); n > want {
			t.Errorf("%v allocations on the ordinary path, want %v: %v", n, want, r.Header)
		}
	}
	var x direct.Exchange
	h := traced(direct.HandlerFunc(func(x *direct.Exchange) {})).(direct.Handler)
	x.Wire().Reset(wire.Request{Method: "GET", Path: []byte("/"), Fields: wire.FieldsOf(benchRequest().Header)})
	if n := testing.AllocsPerRun(100, func() { h.ServeDirect(&x) }); n > 0 {
		t.Errorf("%v allocations on the fast path", n)
	}
}
