package h1

import (
	"net/http"
	"net/url"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/tally"
)

// exchange is one request and its response in HTTP/1: one allocation, never reused.
// It is the bridge.Message of its Exchange.
type exchange struct {
	bridge.Exchange
	s *Session
	// writing is nil before the first byte of the response is written, and after the last.
	writing *writing
	body    *body // nil when there is none
	minor   uint8
	more    bool      // another request had arrived when this one was parsed
	unsent  bool      // the response could not be sent
	next    conn.Next // of Run
}

func (x *exchange) Session() conn.Session { return x.s }

// Run and Ended implement conn.UserCode.
func (x *exchange) Run()             { x.next = x.Serve() }
func (x *exchange) Ended(e exec.End) { x.next = x.Cut(e) }

// newExchange makes the exchange of a parsed head, which came as t says. It copies head once; all
// strings of the request are parts of that copy.
func (s *Session) newExchange(h *http1.Request, head []byte, t bridge.Timing) (*exchange, *http1.Error) {
	x := &exchange{s: s}
	x.SetContext()
	str := string(head)
	x.Time = t
	x.Init(&s.Client, x)
	r := &x.Req
	r.Method = bridge.MethodOf(str[h.Method.Start:h.Method.End])
	r.RequestURI = str[h.Target.Start:h.Target.End]
	x.Proto, r.Proto, r.ProtoMajor, r.ProtoMinor = tally.HTTP11, "HTTP/1.1", 1, int(h.Minor)
	switch {
	case h.Minor == 0:
		x.Proto, r.Proto = tally.HTTP10, "HTTP/1.0"
	case h.Minor > 1: // one space follows the target, eight bytes are the version
		r.Proto = str[h.Target.End+1 : h.Target.End+9]
	}
	r.URL = &x.URL
	if h.Form != http1.FormOrigin || !bridge.PlainTarget(r.URL, r.RequestURI) {
		if !parseTarget(r, h.Form) {
			return nil, errTarget
		}
	}
	if r.Host = x.URL.Host; r.Host == "" && h.HasHost {
		// RFC 9112 section 3.2.2: the host of an absolute target takes precedence.
		r.Host = str[h.Host.Start:h.Host.End]
	}
	if x.minor, r.Close = h.Minor, !h.KeepAlive; r.Close {
		x.Res.CloseAfter.Store(true)
	}
	if h.ExpectOther {
		x.Refusal = bridge.ForExpectation
	}
	x.IsHEAD = r.Method == http.MethodHead
	x.buildHeader(h, head, str)
	if h.Chunked && h.HasTrailer {
		_, most := s.cfg.Head.Get()
		bridge.AnnounceTrailers(r, most)
	}
	if r.Body = http.NoBody; h.Chunked || h.ContentLength > 0 {
		x.initBody(h)
	}
	if h.Preface {
		// As in net/http, for handlers that take over the connection
		// (x/net/http2/h2c); otherwise the connection is closed after the
		// response.
		r.ProtoMajor, r.ProtoMinor, r.Proto = 2, 0, "HTTP/2.0"
		r.ContentLength, r.Close = -1, true
	}
	return x, nil
}

// buildHeader fills r.Header: all fields except those that net/http moves
// elsewhere (Host, and with chunked coding Transfer-Encoding and Trailer).
//
// The values are one array, with a slice of it for each field. Go allocates a
// map of up to eight entries in two pieces, a larger one in four.
func (x *exchange) buildHeader(h *http1.Request, head []byte, s string) {
	var values []string
	header := make(http.Header, max(len(h.Fields)-1, 0))
	x.Req.Header = header
	for i := range h.Fields {
		f := &h.Fields[i]
		if f.ID == http1.FieldHost || f.ID == http1.FieldTransferEncoding {
			continue
		}
		key := f.ID.String()
		if key == "" {
			key = http1.CanonicalName(f.Name.Bytes(head), f.ID)
		}
		value := s[f.Value.Start:f.Value.End]
		if have, ok := header[key]; ok {
			header[key] = append(have, value)
			continue
		}
		if values == nil {
			values = make([]string, 0, len(h.Fields)-i)
		}
		n := len(values)
		values = append(values, value)
		header[key] = values[n : n+1 : n+1]
	}
	if p, ok := header["Pragma"]; ok && p[0] == "no-cache" {
		// RFC 7234 section 5.4, as net/http does it.
		if _, ok := header["Cache-Control"]; !ok {
			header["Cache-Control"] = []string{"no-cache"}
		}
	}
}

// parseTarget fills r.URL from r.RequestURI, or reports false if that is not a URL.
func parseTarget(r *http.Request, form http1.Form) bool {
	target := r.RequestURI
	authority := form == http1.FormAuthority
	if authority {
		target = "http://" + target
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return false
	}
	*r.URL = *u
	if authority {
		r.URL.Scheme = ""
	}
	return true
}

var errTarget = &http1.Error{Status: http.StatusBadRequest, Reason: "the request target is not a URL"}
