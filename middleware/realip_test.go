package middleware

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/direct"
)

var realIPTests = []struct {
	name, peer string
	forwarded  bool
	lines      []string
	want       string
}{
	{"no field", "10.0.0.1:5", false, nil, "10.0.0.1:5"},
	{"one", "10.0.0.1:5", false, []string{"198.51.100.7"}, "198.51.100.7:0"},
	{"untrusted peer", "203.0.113.9:5", false, []string{"198.51.100.7"}, "203.0.113.9:5"},
	{"forged before", "10.0.0.1:5", false, []string{"1.1.1.1, 198.51.100.7"}, "198.51.100.7:0"},
	{"two proxies", "10.0.0.1:5", false, []string{"1.1.1.1, 198.51.100.7, 10.9.9.9"}, "198.51.100.7:0"},
	{"lines are one list", "10.0.0.1:5", false, []string{"1.1.1.1", "198.51.100.7", "10.9.9.9, 10.9.9.8"}, "198.51.100.7:0"},
	{"only proxies", "10.0.0.1:5", false, []string{"10.2.2.2, 10.3.3.3"}, "10.2.2.2:0"},
	{"with a port", "10.0.0.1:5", false, []string{"198.51.100.7:4711"}, "198.51.100.7:4711"},
	{"IPv6", "10.0.0.1:5", false, []string{"2001:db8::7"}, "[2001:db8::7]:0"},
	{"IPv6 in brackets", "10.0.0.1:5", false, []string{"[2001:db8::7]"}, "[2001:db8::7]:0"},
	{"IPv6 with a port", "10.0.0.1:5", false, []string{"[2001:db8::7]:4711"}, "[2001:db8::7]:4711"},
	{"IPv6 proxies", "[fd00::1]:5", false, []string{"198.51.100.7, fd00::2"}, "198.51.100.7:0"},
	{"mapped peer", "[::ffff:10.0.0.1]:5", false, []string{"198.51.100.7"}, "198.51.100.7:0"},
	{"mapped proxy", "10.0.0.1:5", false, []string{"198.51.100.7, ::ffff:10.2.2.2"}, "198.51.100.7:0"},
	{"garbage", "10.0.0.1:5", false, []string{"nonsense"}, "10.0.0.1:5"},
	{"garbage ends it", "10.0.0.1:5", false, []string{"198.51.100.7, nonsense, 10.2.2.2"}, "10.2.2.2:0"},
	{"garbage further than needed", "10.0.0.1:5", false, []string{"nonsense, 198.51.100.7"}, "198.51.100.7:0"},
	{"garbage in another line", "10.0.0.1:5", false, []string{"198.51.100.7", "x", "10.2.2.2"}, "10.2.2.2:0"},
	{"unknown", "10.0.0.1:5", false, []string{"unknown"}, "10.0.0.1:5"},
	{"empty", "10.0.0.1:5", false, []string{""}, "10.0.0.1:5"},
	{"empty elements", "10.0.0.1:5", false, []string{" ,198.51.100.7 ,, ,\t10.2.2.2,"}, "198.51.100.7:0"},
	{"zone", "10.0.0.1:5", false, []string{"fe80::1%eth0"}, "10.0.0.1:5"},
	{"octal", "10.0.0.1:5", false, []string{"0127.0.0.1"}, "10.0.0.1:5"},
	{"port too large", "10.0.0.1:5", false, []string{"198.51.100.7:65536"}, "10.0.0.1:5"},
	{"IPv4 in brackets", "10.0.0.1:5", false, []string{"[198.51.100.7]"}, "10.0.0.1:5"},
	{"line break", "10.0.0.1:5", false, []string{"198.51.100.7\n"}, "10.0.0.1:5"},
	{"long", "10.0.0.1:5", false, []string{strings.Repeat("1", 5000)}, "10.0.0.1:5"},
	{"many", "10.0.0.1:5", false, []string{"198.51.100.7" + strings.Repeat(",10.0.0.2", 5000)}, "198.51.100.7:0"},
	{"unix socket", "@", false, []string{"198.51.100.7"}, "198.51.100.7:0"},
	{"the other field", "10.0.0.1:5", true, nil, "10.0.0.1:5"},

	{"Forwarded", "10.0.0.1:5", true, []string{"for=198.51.100.7"}, "198.51.100.7:0"},
	{"quoted", "10.0.0.1:5", true, []string{`for="198.51.100.7:80"`}, "198.51.100.7:80"},
	{"IPv6", "10.0.0.1:5", true, []string{`For="[2001:db8::7]:4711"`}, "[2001:db8::7]:4711"},
	{"IPv6 without brackets", "10.0.0.1:5", true, []string{`for="2001:db8::7"`}, "[2001:db8::7]:0"}, // common, if wrong
	{"parameters", "10.0.0.1:5", true, []string{"proto=https;FOR=198.51.100.7 ; by=10.0.0.1"}, "198.51.100.7:0"},
	{"a list", "10.0.0.1:5", true, []string{"for=1.1.1.1, for=198.51.100.7;proto=http, for=10.2.2.2"}, "198.51.100.7:0"},
	{"comma in quotes", "10.0.0.1:5", true, []string{`for=198.51.100.7;host="a,b", for=10.2.2.2;host=",;\",x"`}, "198.51.100.7:0"},
	{"an open quote before", "10.0.0.1:5", true, []string{`for="1.1.1.1, for=198.51.100.7`}, "198.51.100.7:0"},
	{"an open quote before quotes", "10.0.0.1:5", true, []string{`for="1.1.1.1, for="198.51.100.7"`}, "198.51.100.7:0"},
	{"an open quote, a proxy", "10.0.0.1:5", true, []string{`for="x, for="10.2.2.2"`}, "10.2.2.2:0"},
	{"an escape before", "10.0.0.1:5", true, []string{`for="1.1.1.1\`, `for="198.51.100.7"`}, "198.51.100.7:0"},
	{"no for", "10.0.0.1:5", true, []string{"for=1.1.1.1, proto=http"}, "10.0.0.1:5"},
	{"two for", "10.0.0.1:5", true, []string{"for=1.1.1.1;for=198.51.100.7"}, "10.0.0.1:5"},
	{"obfuscated", "10.0.0.1:5", true, []string{"for=_hidden, for=10.2.2.2"}, "10.2.2.2:0"},
	{"unknown", "10.0.0.1:5", true, []string{"for=unknown"}, "10.0.0.1:5"},
	{"obfuscated port", "10.0.0.1:5", true, []string{`for="198.51.100.7:_x"`}, "10.0.0.1:5"},
	{"escaped", "10.0.0.1:5", true, []string{`for="198.51.100\.7"`}, "10.0.0.1:5"},
	{"a space", "10.0.0.1:5", true, []string{"for= 198.51.100.7"}, "10.0.0.1:5"},
}

func TestRealIP(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	echo := direct.HandlerFunc(func(x *direct.Exchange) { x.WriteString(x.RemoteAddr()) })
	for _, tt := range realIPTests {
		mw := Must(RealIP(&RealIPOptions{Trusted: trusted, TrustLocal: true, Forwarded: tt.forwarded}))
		ways(t, mw, echo, func(t *testing.T, do func(r *http.Request) answer) {
			r := request("GET", "/", "")
			r.RemoteAddr = tt.peer
			r.Header["X-Forwarded-For"], r.Header["Forwarded"] = tt.lines, []string{"for=9.9.9.9"}
			if tt.forwarded {
				r.Header["X-Forwarded-For"], r.Header["Forwarded"] = []string{"9.9.9.9"}, tt.lines
			}
			if a := do(r); a.Body != tt.want {
				t.Errorf("%s: got %s, want %s", tt.name, a.Body, tt.want)
			}
		})
	}
	ways(t, Must(RealIP(nil)), echo, func(t *testing.T, do func(r *http.Request) answer) {
		for _, peer := range []string{"10.0.0.1:5", "@", ""} {
			r := request("GET", "/", "", "X-Forwarded-For", "1.1.1.1")
			r.RemoteAddr = peer
			if a := do(r); a.Body != peer {
				t.Errorf("%q is trusted: %s", peer, a.Body)
			}
		}
	})
	for _, p := range []netip.Prefix{{}, netip.MustParsePrefix("::ffff:0.0.0.0/90")} {
		mw, err := RealIP(&RealIPOptions{Trusted: []netip.Prefix{p}})
		refused(t, mw, err, "middleware: RealIP: Trusted: ")
	}
	// A prefix of mapped addresses is one of IPv4's.
	mapped := []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104")}
	ways(t, Must(RealIP(&RealIPOptions{Trusted: mapped})), echo, func(t *testing.T, do func(r *http.Request) answer) {
		for peer, want := range map[string]string{"10.0.0.1:5": "1.1.1.1:0", "[::ffff:10.0.0.1]:5": "1.1.1.1:0", "11.0.0.1:5": "11.0.0.1:5"} {
			r := request("GET", "/", "", "X-Forwarded-For", "1.1.1.1")
			r.RemoteAddr = peer
			if a := do(r); a.Body != want {
				t.Errorf("%s: got %s", peer, a.Body)
			}
		}
	})
	if mapped[0].Bits() != 104 {
		t.Error("the caller's options were changed")
	}
	// What is declined is left as it was.
	var x direct.Exchange
	r := request("GET", "/", "", "X-Forwarded-For", "1.1.1.1")
	r.RemoteAddr = "10.0.0.1:5"
	exchange(&x, r)
	if Must(RealIP(&RealIPOptions{Trusted: trusted}))(declines{hello}).(direct.Handler).ServeDirect(&x) || x.RemoteAddr() != "10.0.0.1:5" {
		t.Errorf("got %s", x.RemoteAddr())
	}
}

// The last entry is the proxy's, whatever the client has sent.
func FuzzRealIP(f *testing.F) {
	for _, tt := range realIPTests {
		f.Add(strings.Join(tt.lines, ","))
	}
	o := &RealIPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	f.Fuzz(func(t *testing.T, client string) {
		for _, forwarded := range []bool{false, true} {
			o.Forwarded = forwarded
			last := ", 198.51.100.7"
			if forwarded {
				last = `, for="198.51.100.7";host="a,b\"c"`
			}
			w := walk{o: o}
			w.line(client + last)
			if got := w.best.String(); !w.found || got != "198.51.100.7:0" {
				t.Errorf("%q: got %s", client+last, got)
			}
			w = walk{o: o}
			w.line(client) // must not panic
		}
	})
}

// An access log outside of RealIP has the client's address too, also if middleware
// between the two copies the request.
func TestRealIPInsideOfLog(t *testing.T) {
	realIP := Must(RealIP(&RealIPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}))
	for name, between := range map[string][]func(http.Handler) http.Handler{
		"nothing":          {},
		"RequestID":        {RequestID(nil)},
		"BodyLimit":        {BodyLimit(&BodyLimitOptions{MaxSize: 100})},
		"Timeout":          {Timeout(&TimeoutOptions{Limit: time.Hour})},
		"filters, in runs": {RequestID(nil), InFlight(&InFlightOptions{Max: 1}), RequestID(nil), InFlight(&InFlightOptions{Max: 1})},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			log := NewAccessLog(&AccessLogOptions{Output: &out, BufferSize: -1, Format: LogCommon})
			defer log.Close()
			mw := func(h http.Handler) http.Handler {
				return log.Wrap(Chain(realIP(h), between...))
			}
			ways(t, mw, hello, func(t *testing.T, do func(r *http.Request) answer) {
				out.Reset()
				do(request("POST", "/", "body", "X-Forwarded-For", "198.51.100.7"))
				if !strings.HasPrefix(out.String(), "198.51.100.7 ") {
					t.Errorf("logged %s", out.String())
				}
			})
		})
	}
}
