package tracing

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/chert-http/chert/direct/wire"
)

const (
	traceHex = "0af7651916cd43dd8448eb211c80319c"
	spanHex  = "b7ad6b7169203331"
	valid01  = "00-" + traceHex + "-" + spanHex + "-01"
)

// W3C Trace Context: which traceparents are continued.
func TestParent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		why   string
		lines []string
		valid bool
		flags trace.TraceFlags
	}{
		{"sampled", []string{valid01}, true, 1},
		{"not sampled", []string{valid01[:53] + "00"}, true, 0},
		{"random trace id", []string{valid01[:53] + "03"}, true, 3},
		{"unknown flags are ignored", []string{valid01[:53] + "ff"}, true, 3},
		{"none", nil, false, 0},
		{"empty", []string{""}, false, 0},
		{"two lines", []string{valid01, valid01}, false, 0},
		{"two lines, one invalid", []string{"x", valid01}, false, 0},
		{"two in one line", []string{valid01 + "," + valid01}, false, 0},
		{"version ff", []string{"ff" + valid01[2:]}, false, 0},
		{"version 0x", []string{"0x" + valid01[2:]}, false, 0},
		{"version in upper case", []string{"AA" + valid01[2:]}, false, 0},
		{"later version", []string{"cc" + valid01[2:]}, true, 1},
		{"later version, more parts", []string{"cc" + valid01[2:] + "-what-ever"}, true, 1},
		{"later version, longer flags", []string{"cc" + valid01[2:] + "1"}, false, 0},
		{"later version, too short", []string{"cc" + valid01[2:54]}, false, 0},
		{"version 00, more parts", []string{valid01 + "-x"}, false, 0},
		{"version 00, a dash more", []string{valid01 + "-"}, false, 0},
		{"trace id of zeros", []string{"00-" + strings.Repeat("0", 32) + "-" + spanHex + "-01"}, false, 0},
		{"span id of zeros", []string{"00-" + traceHex + "-" + strings.Repeat("0", 16) + "-01"}, false, 0},
		{"trace id in upper case", []string{"00-" + strings.ToUpper(traceHex) + "-" + spanHex + "-01"}, false, 0},
		{"span id in upper case", []string{"00-" + traceHex + "-" + strings.ToUpper(spanHex) + "-01"}, false, 0},
		{"trace id too short", []string{"00-" + traceHex[1:] + "-" + spanHex + "-01"}, false, 0},
		{"trace id too long", []string{"00-" + traceHex + "0-" + spanHex + "-01"}, false, 0},
		{"not hexadecimal", []string{"00-" + traceHex[1:] + "g-" + spanHex + "-01"}, false, 0},
		{"flags not hexadecimal", []string{valid01[:53] + "0x"}, false, 0},
		{"flags in upper case", []string{valid01[:53] + "0F"}, false, 0},
		{"flags too short", []string{valid01[:54]}, false, 0},
		{"other separators", []string{strings.ReplaceAll(valid01, "-", "_")}, false, 0},
		{"space inside", []string{"00 -" + valid01[3:]}, false, 0},
	} {
		h := http.Header{"Traceparent": tt.lines}
		if tt.lines == nil {
			h = http.Header{}
		}
		tr := &tracing{}
		for way, p := range map[string]parent{"plain": tr.plainParent(h), "direct": tr.parentOf(wire.FieldsOf(h))} {
			if p.valid != tt.valid || p.valid && p.flags != tt.flags {
				t.Errorf("%s, %s: %v %v", tt.why, way, p.valid, p.flags)
				continue
			}
			if sc := p.spanContext(); tt.valid && (sc.TraceID().String() != traceHex || sc.SpanID().String() != spanHex || !sc.IsRemote()) {
				t.Errorf("%s, %s: %v", tt.why, way, sc)
			}
		}
		// The propagator of OpenTelemetry continues nothing that this does not, except what
		// is known here: of several lines it takes the first, and it allows a dash at the
		// end.
		other := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(h)))
		if other.IsValid() && !tt.valid && len(tt.lines) == 1 && tt.why != "version 00, a dash more" {
			t.Errorf("%s: OpenTelemetry's propagator accepts it", tt.why)
		}
	}
}

func TestState(t *testing.T) {
	t.Parallel()
	many := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, "k"+strings.Repeat("a", i)+"=1")
		}
		return strings.Join(all, ",")
	}
	for _, tt := range []struct {
		why, want string
		lines     []string
	}{
		{"one", "a=1", []string{"a=1"}},
		{"the order stays", "b=2,a=1", []string{"b=2,a=1"}},
		{"several lines are one list", "a=1,b=2", []string{"a=1", "b=2"}},
		{"space around members", "a=1,b=2", []string{" a=1 ,\tb=2\t"}},
		{"empty members", "a=1,b=2", []string{"a=1,,b=2,", " ,"}},
		{"32 members", many(32), []string{many(32)}},
		{"33 members", "", []string{many(33)}},
		{"33 members on two lines", "", []string{many(32), "z=1"}},
		{"a key twice", "", []string{"a=1,a=2"}},
		{"a key twice on two lines", "", []string{"a=1", "a=2"}},
		{"of a tenant", "t@v=1", []string{"t@v=1"}},
		{"a key in upper case", "", []string{"A=1"}},
		{"no value", "", []string{"a"}},
		{"an equals sign in the value", "", []string{"a=1=2"}},
		{"key of 256", strings.Repeat("k", 256) + "=1", []string{strings.Repeat("k", 256) + "=1"}},
		{"key of 257", "", []string{strings.Repeat("k", 257) + "=1"}},
		{"value of 256", "k=" + strings.Repeat("v", 256), []string{"k=" + strings.Repeat("v", 256)}},
		{"value of 257", "", []string{"k=" + strings.Repeat("v", 257)}},
		{"none", "", nil},
	} {
		h := http.Header{"Traceparent": {valid01}, "Tracestate": tt.lines}
		tr := &tracing{}
		for way, p := range map[string]parent{"plain": tr.plainParent(h), "direct": tr.parentOf(wire.FieldsOf(h))} {
			// An invalid one does not affect traceparent.
			if sc := p.spanContext(); sc.TraceState().String() != tt.want || !sc.IsValid() {
				t.Errorf("%s, %s: %q", tt.why, way, sc.TraceState())
			}
		}
	}
}

func FuzzParent(f *testing.F) {
	f.Add(valid01, "a=1")
	f.Fuzz(func(t *testing.T, line, tracestate string) {
		h := http.Header{"Traceparent": {line}, "Tracestate": {tracestate}}
		p := new(tracing).plainParent(h)
		want := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(h)))
		// OpenTelemetry's does not accept unknown flags, and accepts later versions
		// without the dash.
		if strings.HasPrefix(line, "00") && len(line) == lengthOf0 && (line[53:] == "00" || line[53:] == "01") {
			if p.valid != want.IsValid() || p.valid && (p.traceID != want.TraceID() || p.spanID != want.SpanID() || p.flags != want.TraceFlags()) {
				t.Errorf("%q: %+v, OpenTelemetry %+v", line, p, want)
			}
		}
		if sc := p.spanContext(); p.valid && !sc.IsValid() {
			t.Errorf("%q: %v", line, sc)
		}
	})
}
