package middleware

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/filter"
)

// SecurityHeadersOptions are the options of SecurityHeaders. In each, "" is the
// default and "-" leaves the field out.
type SecurityHeadersOptions struct {
	FrameOptions   string // X-Frame-Options; "": DENY
	ReferrerPolicy string // "": strict-origin-when-cross-origin
	OpenerPolicy   string // Cross-Origin-Opener-Policy; "": same-origin
	ResourcePolicy string // Cross-Origin-Resource-Policy; "": same-origin
	// ContentSecurityPolicy is left out by default: the right one depends on
	// the pages. A strict one for a JSON API: "default-src 'none';
	// frame-ancestors 'none'".
	ContentSecurityPolicy string
	PermissionsPolicy     string // left out by default
	// HSTS is for how long browsers are to use TLS only (RFC 6797). Default none,
	// and so is negative: the field is left out. Set it if all of the host is
	// served over TLS and will be for that long: it cannot be taken back before.
	// Browsers ignore it without TLS.
	HSTS           time.Duration
	HSTSSubdomains bool // for all hosts below too
}

// SecurityHeaders sets fields that restrict browsers: those of the options, and
// X-Content-Type-Options: nosniff. A handler may set others instead.
func SecurityHeaders(o *SecurityHeadersOptions) func(http.Handler) http.Handler {
	fields := options(o).fields()
	return filter.New(func(c *filter.Call) filter.Outcome {
		for _, f := range fields {
			c.SetHeader(f.Name, f.Value)
		}
		return filter.Pass
	})
}

func (o SecurityHeadersOptions) fields() (fields []wire.Field) {
	add := func(name, value, def string) {
		if value = cmp.Or(value, def); value != "-" && value != "" {
			fields = append(fields, wire.Field{Name: http.CanonicalHeaderKey(name), Value: value})
		}
	}
	add("X-Content-Type-Options", "nosniff", "")
	add("X-Frame-Options", o.FrameOptions, "DENY")
	add("Referrer-Policy", o.ReferrerPolicy, "strict-origin-when-cross-origin")
	add("Cross-Origin-Opener-Policy", o.OpenerPolicy, "same-origin")
	add("Cross-Origin-Resource-Policy", o.ResourcePolicy, "same-origin")
	add("Content-Security-Policy", o.ContentSecurityPolicy, "")
	add("Permissions-Policy", o.PermissionsPolicy, "")
	if o.HSTS > 0 {
		value := "max-age=" + strconv.FormatInt(int64(o.HSTS/time.Second), 10)
		if o.HSTSSubdomains {
			value += "; includeSubDomains"
		}
		add("Strict-Transport-Security", value, "")
	}
	return fields
}
