package middleware

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/internal/view"
)

// CORSOptions are the options of CORS.
type CORSOptions struct {
	// Origins are those whose scripts may read responses: "https://a.example",
	// "https://*.a.example" for all hosts below a.example but not itself, or
	// "*" alone for all. Default: none. "null" must be listed explicitly, and
	// should not be: any page can have that origin.
	Origins []string
	// Methods are what scripts may use besides GET, HEAD and POST.
	Methods []string
	// Headers are what scripts may set besides the safelisted ones; "*" is all
	// but Authorization, which must be listed explicitly.
	Headers []string
	// Expose are the response fields that scripts may read; "*" is all.
	Expose []string
	// Credentials lets browsers send cookies and other credentials. Not with
	// "*" anywhere: any page could act as its visitor.
	Credentials bool
	// MaxAge is how long browsers may remember a preflight. Default 5 s, which is
	// theirs; negative: not at all.
	MaxAge time.Duration
}

type cors struct {
	any         bool
	exact       map[string]string // to itself, so that a lookup allocates nothing
	below       []struct{ scheme, host string }
	credentials bool
	vary        string
	expose      []wire.Field // of ordinary responses
	preflight   []wire.Field
}

const (
	allowOrigin   = "Access-Control-Allow-Origin"
	preflightVary = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"
)

// CORS responds to preflights with 204, and adds the fields of the Fetch
// standard to responses for the allowed origins. For others it adds nothing,
// and the browser withholds the response from the script; the handler has run
// all the same, so CORS does not protect against forged requests.
// http.CrossOriginProtection does.
//
// It belongs around a Router or into the Router's own Use: preflights are OPTIONS, which
// usually has no route, and then the middleware of a Group does not see them.
//
// Vary says what responses depend on. It is an error if "*" stands beside Credentials,
// or if one of Origins is no origin.
func CORS(o *CORSOptions) (func(http.Handler) http.Handler, error) {
	c, err := newCORS(options(o))
	if err != nil {
		return nil, err
	}
	return filter.New(c.decide), nil
}

func (c *cors) decide(r *filter.Call) filter.Outcome {
	value, n := r.Fields().First("Origin")
	origin, ok := c.allowed(view.String(value), n)
	if n > 0 && r.Method() == http.MethodOptions && r.HasHeader("Access-Control-Request-Method") {
		// Fetch standard, "CORS-preflight request".
		c.mark(r, preflightVary, ok, origin, c.preflight)
		return r.Respond(func(x *direct.Exchange) { x.SetStatus(http.StatusNoContent) })
	}
	c.mark(r, c.vary, ok, origin, c.expose)
	return filter.Pass
}

func newCORS(o CORSOptions) (*cors, error) {
	c := &cors{exact: map[string]string{}, credentials: o.Credentials, vary: "Origin"}
	for _, origin := range o.Origins {
		scheme, host, ok := strings.Cut(origin, "://")
		switch {
		case origin == "*" && len(o.Origins) == 1:
			c.any, c.vary = true, ""
		case origin == "null":
			c.exact[origin] = origin
		case !ok || scheme == "" || host == "" || strings.ContainsAny(host, "/ ?#@") ||
			origin != strings.ToLower(origin) || // and what no browser sends:
			scheme == "https" && strings.HasSuffix(host, ":443") || scheme == "http" && strings.HasSuffix(host, ":80"):
			return nil, fmt.Errorf("middleware: CORS: Origins: %q is no origin: scheme, host in lower case, port "+
				"unless it is the scheme's", origin)
		case strings.HasPrefix(host, "*.") && strings.Count(host, "*") == 1 && len(host) > 2:
			c.below = append(c.below, struct{ scheme, host string }{scheme + "://", host[1:]})
		case strings.Contains(host, "*"):
			return nil, fmt.Errorf("middleware: CORS: Origins: in %q the star must stand for the first labels of the "+
				"host", origin)
		default:
			c.exact[origin] = origin
		}
	}
	if o.Credentials && (c.any || slices.Contains(o.Methods, "*") || slices.Contains(o.Headers, "*") ||
		slices.Contains(o.Expose, "*")) {
		return nil, errors.New(`middleware: CORS: Credentials cannot go with "*"`)
	}
	add := func(to *[]wire.Field, name, value string) {
		if value != "" {
			*to = append(*to, wire.Field{Name: name, Value: value})
		}
	}
	add(&c.expose, "Access-Control-Expose-Headers", strings.Join(o.Expose, ", "))
	add(&c.preflight, "Access-Control-Allow-Methods", strings.Join(o.Methods, ", "))
	add(&c.preflight, "Access-Control-Allow-Headers", strings.Join(o.Headers, ", "))
	if o.MaxAge != 0 {
		add(&c.preflight, "Access-Control-Max-Age", strconv.FormatInt(int64(max(o.MaxAge, 0)/time.Second), 10))
	}
	return c, nil
}

// allowed returns the origin to send, and whether it is allowed. n must be 1, unless all are.
func (c *cors) allowed(origin string, n int) (string, bool) {
	if c.any {
		return "*", true // always: responses do not depend on the origin, so caches may give them to any
	}
	if n != 1 {
		return "", false
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

// isLabels reports whether s consists of labels of a host: no port, path or
// user can hide in it.
func isLabels(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_') {
			return false
		}
	}
	return s != ""
}

// mark adds the fields that a response needs: vary, and, if the origin is
// allowed, the origin and fields.
func (c *cors) mark(to *filter.Call, vary string, ok bool, origin string, fields []wire.Field) {
	if vary != "" {
		to.AddHeader("Vary", vary)
	}
	if !ok {
		return
	}
	to.AddHeader(allowOrigin, origin)
	if c.credentials {
		to.AddHeader("Access-Control-Allow-Credentials", "true")
	}
	for _, f := range fields {
		to.AddHeader(f.Name, f.Value)
	}
}
