package tracing_test

import (
	"fmt"
	"io"
	"log"
	"net/http"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/chert-http/chert/chertest"
	"github.com/chert-http/chert/middleware/tracing"
	"github.com/chert-http/chert/router"
)

// Spans are named after the route, and what a handler does is part of its request's.
func ExampleNew() {
	exporter := tracetest.NewInMemoryExporter() // usually one of otlptracehttp
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter))
	traced := tracing.New(&tracing.Options{TracerProvider: provider})

	mux := router.New()
	mux.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, r *http.Request) {
		_, query := provider.Tracer("example").Start(r.Context(), "query")
		io.WriteString(w, "user "+r.PathValue("id"))
		query.End()
	})
	srv := chertest.NewServer(traced(mux))
	res, err := srv.Client().Get(srv.URL + "/users/7")
	if err != nil {
		log.Fatal(err)
	}
	io.Copy(io.Discard, res.Body)
	res.Body.Close()
	srv.Close() // when it returns, the request's span has ended

	spans := exporter.GetSpans()
	for _, s := range spans {
		fmt.Println(s.Name, s.SpanKind)
	}
	fmt.Println("in the request's:", spans[0].Parent.SpanID() == spans[1].SpanContext.SpanID())
	// Output:
	// query internal
	// GET /users/{id} server
	// in the request's: true
}
