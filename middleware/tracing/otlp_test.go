package tracing

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	v1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/chert-http/chert/chertest"
)

// A receiver accepts spans as a collector does: OTLP over HTTP.
type receiver struct {
	mu    sync.Mutex
	spans []*v1.Span
}

func (c *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var req collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &req); err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, "no OTLP", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	for _, rs := range req.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			c.spans = append(c.spans, ss.Spans...)
		}
	}
	c.mu.Unlock()
	b, _ := proto.Marshal(&collector.ExportTraceServiceResponse{})
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.Write(b)
}

// Spans reach a receiver of OTLP by the SDK's exporter and its batches: also those of
// requests whose bytes are no UTF-8, which would make a whole batch invalid.
func TestOTLP(t *testing.T) {
	t.Parallel()
	var got receiver
	target := httptest.NewServer(&got)
	defer target.Close()
	ctx := t.Context()
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(target.URL+"/v1/traces"), otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}))
	if err != nil {
		t.Fatal(err)
	}
	tp := sdk.NewTracerProvider(sdk.WithBatcher(exporter))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /a/{x}", func(w http.ResponseWriter, r *http.Request) {
		_, span := tp.Tracer("handler").Start(r.Context(), "query")
		span.End()
		io.WriteString(w, "hello")
	})
	traced := New(&Options{TracerProvider: tp, Query: true})(mux)
	ended := make(chan struct{}, 2)
	s := chertest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		traced.ServeHTTP(w, r)
		ended <- struct{}{}
	}))
	defer s.Close()
	if _, body := get(t, s.Client(), s.URL+"/a/%ff%fe?%ff", "User-Agent", "\xff", "Traceparent", valid01); body != "hello" {
		t.Error(body)
	}
	get(t, s.Client(), s.URL+"/a/b")
	<-ended
	<-ended
	s.Close() // all responses have been sent
	if err := tp.Shutdown(context.WithoutCancel(ctx)); err != nil {
		t.Fatal(err)
	}
	got.mu.Lock()
	defer got.mu.Unlock()
	if len(got.spans) != 4 {
		t.Fatalf("%d spans", len(got.spans))
	}
	i := slices.IndexFunc(got.spans, func(s *v1.Span) bool { return s.Kind == v1.Span_SPAN_KIND_SERVER && s.ParentSpanId != nil })
	span := got.spans[i]
	if span.Name != "GET /a/{x}" || len(span.Events) != 2 || span.EndTimeUnixNano < span.StartTimeUnixNano {
		t.Errorf("%v", span)
	}
	if j := slices.IndexFunc(got.spans, func(s *v1.Span) bool { return string(s.ParentSpanId) == string(span.SpanId) }); j < 0 || got.spans[j].Name != "query" {
		t.Errorf("the handler's span is no child: %v", got.spans)
	}
	if !strings.Contains(span.String(), "/a/\ufffd") {
		t.Errorf("%v", span)
	}
}
