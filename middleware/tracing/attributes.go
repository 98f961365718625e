package tracing

import (
	"net/http"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/chert-http/chert/direct/wire"
)

// maxText is how much of a text that clients choose is recorded, in bytes.
const maxText = 1 << 10

// responseField has the span of a request in its response, as the drafts of Trace
// Context level 3 have it.
const responseField = "Traceresponse"

var responseName = wire.NewName(responseField)

// plainAttributes returns what is known when a request arrives.
func plainAttributes(r *http.Request, query bool) []attribute.KeyValue {
	path, raw := "", ""
	if r.URL != nil {
		path, raw = r.URL.Path, r.URL.RawQuery
	}
	if !query {
		raw = ""
	}
	agent := ""
	if v := r.Header["User-Agent"]; len(v) > 0 {
		agent = v[0]
	}
	attrs := attributes(r.Method, path, raw, r.Host, agent)
	attrs = append(attrs, schemeOf(r.TLS != nil), versionOf(r.Proto))
	if r.ContentLength > 0 {
		attrs = append(attrs, semconv.HTTPRequestBodySize(int(r.ContentLength)))
	}
	return attrs
}

// directAttributes is plainAttributes for the fast path.
func directAttributes(e *wire.Exchange, query bool) []attribute.KeyValue {
	raw := ""
	if query {
		raw = string(e.RawQuery())
	}
	attrs := attributes(e.Method(), string(e.Path()), raw, string(e.Host()), string(e.Fields().Get("User-Agent")))
	attrs = append(attrs, schemeOf(e.TLS()), versionOf(e.Proto()))
	if n := e.BodyLength(); n > 0 {
		attrs = append(attrs, semconv.HTTPRequestBodySize(int(n)))
	}
	return attrs
}

func attributes(method, path, query, host, agent string) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 12)
	if known(method) {
		attrs = append(attrs, semconv.HTTPRequestMethodKey.String(method))
	} else {
		attrs = append(attrs, semconv.HTTPRequestMethodOther, semconv.HTTPRequestMethodOriginal(cut(method)))
	}
	attrs = append(attrs, semconv.URLPath(cut(path)))
	if query != "" {
		attrs = append(attrs, semconv.URLQuery(cut(query)))
	}
	if name, port := splitPort(host); name != "" {
		attrs = append(attrs, semconv.ServerAddress(cut(name)))
		if n, err := strconv.ParseUint(port, 10, 16); err == nil {
			attrs = append(attrs, semconv.ServerPort(int(n)))
		}
	}
	if agent != "" {
		attrs = append(attrs, semconv.UserAgentOriginal(cut(agent)))
	}
	return attrs
}

func schemeOf(tls bool) attribute.KeyValue {
	if tls {
		return semconv.URLScheme("https")
	}
	return semconv.URLScheme("http")
}

// versionOf returns the version of a Request.Proto.
func versionOf(proto string) attribute.KeyValue {
	version := strings.TrimPrefix(proto, "HTTP/")
	if major, ok := strings.CutSuffix(version, ".0"); ok && major != "1" { // the conventions have "2" and "3"
		version = major
	}
	return semconv.NetworkProtocolVersion(version)
}

// known reports whether a method is one of RFC 9110, RFC 5789 or the draft of QUERY:
// clients may invent others, which are not among the values of a name or an attribute.
func known(method string) bool {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY":
		return true
	}
	return false
}

// nameOf returns the name of a span whose route is not known.
func nameOf(method string) string {
	if known(method) {
		return method
	}
	return "HTTP"
}

// pathOf returns a pattern of net/http without its method.
func pathOf(pattern string) string {
	if method, rest, ok := strings.Cut(pattern, " "); ok && !strings.Contains(method, "/") {
		pattern = strings.TrimLeft(rest, " \t")
	}
	return cut(pattern)
}

// splitPort splits "host:port", "host", "[address]:port" and "[address]".
func splitPort(s string) (host, port string) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 || strings.HasSuffix(s, "]") || strings.Contains(s[:i], ":") && !strings.HasSuffix(s[:i], "]") {
		host = s
	} else {
		host, port = s[:i], s[i+1:]
	}
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	return host, port
}

// cut makes an attribute of text that clients choose. One that is not valid UTF-8
// would make exporters reject the span, and all others of its batch.
func cut(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// traceparent returns the span in the format of that field.
func traceparent(span trace.Span) string {
	sc := span.SpanContext()
	return "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + "-" + (sc.TraceFlags() & (trace.FlagsSampled | trace.FlagsRandom)).String()
}
