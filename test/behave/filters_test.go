package behave

import (
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/ratelimit"
)

type filterKey struct{}

// filtered is a chain with all that decides beforehand, and a log.
func filtered(h http.Handler, log *middleware.AccessLog) http.Handler {
	rate := ratelimit.Rate{Count: 1, Per: time.Minute, Burst: 1000}
	return middleware.Chain(h, log.Wrap, middleware.Problems(nil),
		middleware.Recover(&middleware.RecoverOptions{Handle: func(any, []byte) {}}),
		middleware.RequestID(&middleware.RequestIDOptions{Accept: true}), middleware.SecurityHeaders(nil),
		middleware.Must(middleware.CORS(&middleware.CORSOptions{Origins: []string{"https://*.a.example"}, Credentials: true, Expose: []string{"X-A"}})),
		middleware.Must(ratelimit.New(&ratelimit.Options{Rules: []ratelimit.Rule{{Name: "a", Rate: rate, Key: ratelimit.Everyone()}}})),
		middleware.InFlight(&middleware.InFlightOptions{Max: 1}),
		// Inside of the others, which copy the request on the ordinary path.
		middleware.Must(middleware.RealIP(&middleware.RealIPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})),
		middleware.Must(middleware.Bearer(&middleware.BearerOptions{Tokens: map[string]string{"ann": "token"}})), middleware.BodyLimit(&middleware.BodyLimitOptions{MaxSize: 50}),
		filter.New(func(c *filter.Call) filter.Outcome {
			c.SetHeader("Content-Type", "text/kept")
			c.AddHeader("X-Kept", "1")
			c.AddHeader("X-Kept", "a\r\nb: c")
			if v := c.RequestHeader("X-Value"); v != nil {
				c.SetValue(filterKey{}, string(v))
			}
			if c.HasHeader("X-Answer") {
				return c.Respond(func(x *direct.Exchange) {
					x.SetStatus(299)
					x.WriteString("answered " + x.RemoteAddr())
				})
			}
			return filter.Pass
		}))
}

// filteredAnswers are what is inside of the filters, by path.
var filteredAnswers = map[string]func(x *direct.Exchange){
	"/set": func(x *direct.Exchange) {
		x.SetHeader("X-Frame-Options", "own")
		x.AddHeader("X-Kept", "handler")
		x.AddHeader("Vary", "Handler")
		x.WriteString("set")
	},
	"/fixed": func(x *direct.Exchange) { x.Send(fixedAnswer) },
	"/304":   func(x *direct.Exchange) { x.Send(fixed304) },
	"/s304":  func(x *direct.Exchange) { x.SetStatus(304) },
	"/204":   func(x *direct.Exchange) { x.Send(fixed204) },
	"/panic": func(x *direct.Exchange) {
		x.SetHeader("X-Own", "1")
		panic("boom")
	},
	"/breaks": func(x *direct.Exchange) { x.SetHeader("X-A", " a\r\nb: c ") },
	"/json":   func(x *direct.Exchange) { x.JSON(map[string]string{"a": "<b>"}) },
	"/nojson": func(x *direct.Exchange) { fmt.Fprint(x, "before", x.JSON(func() {}) != nil) },
	"/empty":  func(x *direct.Exchange) {},
}

var (
	fixedAnswer = direct.NewResponse(200, http.Header{"X-Frame-Options": {"SAMEORIGIN"}, "Vary": {"Own"}, "Set-Cookie": {"a=b"}}, []byte("fixed\n"))
	fixed304    = direct.NewResponse(304, http.Header{"Etag": {`"x"`}}, nil)
	fixed204    = direct.NewResponse(204, nil, nil)
)

// filteredHandler says what it sees if the path says nothing else, and leaves
// /later to the ordinary path.
type filteredHandler struct{ direct.HandlerFunc }

func newFilteredHandler() direct.Handler {
	return filteredHandler{func(x *direct.Exchange) {
		if answer := filteredAnswers[string(x.Path())]; answer != nil {
			answer(x)
			return
		}
		from := x.RemoteAddr()
		if strings.HasPrefix(from, "127.0.0.1:") {
			from = "local"
		}
		fmt.Fprintf(x, "%s %s %s q=%q from=%s id=%s user=%s value=%v body=%q", x.Method(), x.Path(), x.RawQuery(), x.QueryValue("q"), from,
			middleware.RequestIDOf(x), middleware.UserOf(x), x.Value(filterKey{}), x.Body())
	}}
}

func (h filteredHandler) ServeDirect(x *direct.Exchange) bool {
	return string(x.Path()) != "/later" && h.HandlerFunc.ServeDirect(x)
}

// filteredScript are many requests of one connection, so that what one leaves
// behind would be seen by the next.
func filteredScript() string {
	var b strings.Builder
	const auth, from = "Authorization: Bearer token", "X-Forwarded-For: 198.51.100.7"
	for _, m := range []string{"GET ", "HEAD "} {
		for _, path := range []string{"/echo?q=a%20b+c", "/later?q=1;2&q=%zz&q=3", "/set", "/fixed", "/304", "/s304", "/204", "/panic", "/breaks", "/json", "/nojson", "/empty"} {
			b.WriteString(ask(m+path, auth, "X-Request-Id: id1", from))
			b.WriteString(ask(m+path, auth, "X-Request-Id: id2", "Origin: https://b.a.example", "X-Value: v"))
		}
		b.WriteString(ask(m+"/echo", "X-Request-Id: id3"))
		b.WriteString(ask(m+"/echo", "X-Request-Id: id3", "Authorization: Bearer a", "Authorization: Bearer b"))
		b.WriteString(ask(m+"/echo", auth, "X-Request-Id: id3", "X-Answer: 1", from+":77"))
		b.WriteString(ask(m+"/echo", auth, "X-Request-Id: id3"))
	}
	b.WriteString(ask("OPTIONS /echo", "X-Request-Id: id4", "Origin: https://b.a.example", "Access-Control-Request-Method: PUT"))
	for _, path := range []string{"/echo", "/later"} {
		b.WriteString(post(path, "a body", auth, "X-Request-Id: id5"))
		// Refused with their bodies unread, on the fast path and on the plain one.
		for _, n := range []int{60, 70_000} {
			b.WriteString(post(path, strings.Repeat("x", n), "X-Request-Id: id5"))
			b.WriteString(post(path, strings.Repeat("x", n), auth, "X-Request-Id: id5", from))
		}
		b.WriteString(postChunks(path, servertest.Chunks(strings.Repeat("x", 40), 7), auth, "X-Request-Id: id5"))
	}
	b.WriteString(ask10("GET /echo", auth, "X-Request-Id: id6"))
	return b.String()
}

// Filters do the same on both ways, and around handlers that have no direct one:
// the same bytes are sent and the same is logged.
func TestFilters(t *testing.T) {
	t.Parallel()
	ways := directWays()
	if sys.HavePoller {
		ways = append(ways, directWay{"plain handler", func(s *chert.Server) { s.Engine, s.Placement = chert.EngineLoops, chert.PlacementInline }, false})
	}
	varies := regexp.MustCompile(`time=\S+ |latency=\S+ |;t=\d+`)
	var want []string
	for _, way := range ways {
		var out servertest.Log
		log := middleware.NewAccessLog(&middleware.AccessLogOptions{Output: &out, Format: middleware.LogText, Query: true})
		var h http.Handler = newFilteredHandler()
		if way.name == "plain handler" {
			h = hf(h.ServeHTTP)
		}
		ts := way.start(t, &chert.Server{Handler: filtered(h, log)})
		c := ts.Dial()
		c.SendAside(filteredScript())
		sent := servertest.Undated(c.Rest())
		ts.Control.Close()
		log.Close()
		got := strings.Split(varies.ReplaceAllString(sent+"\r\n"+out.String(), ""), "\n")
		if want == nil {
			want = got
		}
		for i := range max(len(got), len(want)) {
			if i == len(got) || i == len(want) || got[i] != want[i] {
				t.Errorf("%s: got %q\nnet/http %q\nafter %q", way.name, got[i:min(i+3, len(got))], want[i:min(i+3, len(want))], got[max(i-9, 0):i])
				break
			}
		}
	}
}
