package middleware

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// CORSOptions are the options of CORS.
type CORSOptions struct {
	// Origins are those whose scripts may read the answers: "https://a.example",
	// "https://*.a.example" for all hosts below a.example but not itself, or "*"
	// alone for all. Without any there are none. "null" must be named, and should
	// not be: any page can be of that origin.
	Origins []string
	// Methods that scripts may use beside GET, HEAD and POST.
	Methods []string
	// Headers that scripts may set beside the harmless ones; "*" is all but
	// Authorization, which must be named.
	Headers []string
	// Expose are the fields of answers that scripts may see; "*" is all.
	Expose []string
	// Credentials lets browsers send cookies and the like along. Not with "*"
	// anywhere: each page in the world could act as whoever looks at it.
	Credentials bool
	// MaxAge is how long browsers may remember a preflight; 0: their default, 5 s.
	MaxAge time.Duration
}

type cors struct {
	any         bool
	exact       map[string]string // to itself, so that looking up allocates nothing
	below       []struct{ scheme, host string }
	credentials bool
	expose      string
	preflight   []direct.Field
}

const (
	allowOrigin   = "Access-Control-Allow-Origin"
	preflightVary = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"
)

// CORS answers preflights, with 204, and adds what the Fetch standard asks for to
// the answers for the origins allowed. For others it adds nothing, and their
// browser keeps the answer from the script; the handler has run all the same,
// so CORS protects nobody from forged requests. http.CrossOriginProtection does.
//
// Vary says what answers depend on. It panics if "*" stands beside Credentials,
// and for what is no origin.
func CORS(o CORSOptions) func(http.Handler) http.Handler {
	c := newCORS(o)
	return func(next http.Handler) http.Handler {
		return wrap.Handler(next,
			func(w http.ResponseWriter, r *http.Request) {
				h := w.Header()
				origin, ok := c.allowed(first(r.Header["Origin"]), len(r.Header["Origin"]))
				if isPreflight(r.Method, r.Header["Origin"] != nil, r.Header["Access-Control-Request-Method"] != nil) {
					c.answer(ok, origin, h.Add)
					w.WriteHeader(http.StatusNoContent)
					return
				}
				c.mark(ok, origin, h.Add)
				next.ServeHTTP(w, r)
			},
			func(x *direct.Exchange, next direct.Handler) bool {
				value := x.Fields.Get("Origin")
				origin, ok := c.allowed(view(value), direct.Count(x.Fields, "Origin"))
				if isPreflight(x.Method, value != nil, x.Fields.Get("Access-Control-Request-Method") != nil) {
					c.answer(ok, origin, x.AddField)
					x.SetStatus(http.StatusNoContent)
					return true
				}
				c.mark(ok, origin, x.KeepField)
				return next.ServeDirect(x)
			})
	}
}

func newCORS(o CORSOptions) *cors {
	c := &cors{exact: map[string]string{}, credentials: o.Credentials, expose: strings.Join(o.Expose, ", ")}
	for _, origin := range o.Origins {
		scheme, host, ok := strings.Cut(origin, "://")
		switch {
		case origin == "*" && len(o.Origins) == 1:
			c.any = true
		case origin == "null":
			c.exact[origin] = origin
		case !ok || scheme == "" || host == "" || strings.ContainsAny(host, "/ ?#@") || origin != strings.ToLower(origin):
			panic("middleware: CORS: " + strconv.Quote(origin) + " is no origin: scheme, host in lower case, port unless it is the scheme's")
		case strings.HasPrefix(host, "*.") && strings.Count(host, "*") == 1 && len(host) > 2:
			c.below = append(c.below, struct{ scheme, host string }{scheme + "://", host[1:]})
		case strings.Contains(host, "*"):
			panic("middleware: CORS: in " + strconv.Quote(origin) + " the star must stand for the first labels of the host")
		default:
			c.exact[origin] = origin
		}
	}
	if o.Credentials && (c.any || slices.Contains(o.Methods, "*") || slices.Contains(o.Headers, "*") || slices.Contains(o.Expose, "*")) {
		panic(`middleware: CORS: Credentials cannot go with "*"`)
	}
	add := func(name, value string) {
		if value != "" {
			c.preflight = append(c.preflight, direct.Field{Name: name, Value: value})
		}
	}
	add("Access-Control-Allow-Methods", strings.Join(o.Methods, ", "))
	add("Access-Control-Allow-Headers", strings.Join(o.Headers, ", "))
	if o.MaxAge > 0 {
		add("Access-Control-Max-Age", strconv.FormatInt(int64(o.MaxAge/time.Second), 10))
	}
	return c
}

// allowed returns what to answer an origin, of which there must be one.
func (c *cors) allowed(origin string, n int) (string, bool) {
	if n != 1 {
		return "", false
	}
	if c.any {
		return "*", true
	}
	if own, ok := c.exact[origin]; ok {
		return own, true
	}
	for _, b := range c.below {
		rest, ok := strings.CutPrefix(origin, b.scheme)
		if labels, found := strings.CutSuffix(rest, b.host); ok && found && isLabels(labels) {
			return strings.Clone(origin), true
		}
	}
	return "", false
}

// isLabels reports whether s are labels of a host: no port, path or user could
// hide in them.
func isLabels(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_') {
			return false
		}
	}
	return s != ""
}

// isPreflight: Fetch standard, "CORS-preflight request".
func isPreflight(method string, origin, requestMethod bool) bool {
	return method == http.MethodOptions && origin && requestMethod
}

// mark adds what an ordinary answer needs.
func (c *cors) mark(ok bool, origin string, add func(name, value string)) {
	if !c.any {
		add("Vary", "Origin")
	}
	if !ok {
		return
	}
	add(allowOrigin, origin)
	if c.credentials {
		add("Access-Control-Allow-Credentials", "true")
	}
	if c.expose != "" {
		add("Access-Control-Expose-Headers", c.expose)
	}
}

// answer adds what the answer to a preflight needs.
func (c *cors) answer(ok bool, origin string, add func(name, value string)) {
	add("Vary", preflightVary)
	if !ok {
		return
	}
	add(allowOrigin, origin)
	if c.credentials {
		add("Access-Control-Allow-Credentials", "true")
	}
	for _, f := range c.preflight {
		add(f.Name, f.Value)
	}
}
