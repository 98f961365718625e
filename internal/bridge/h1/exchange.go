package h1

import (
	"net/http"
	"net/url"
	"sync"
	"unsafe"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/tally"
)

// exchange is one request and its response in HTTP/1: one allocation, not reused
// except with Server.ReuseRequests. It is the bridge.Message of its Exchange.
type exchange struct {
	bridge.Exchange
	s *Session
	// writing is nil before the first byte of the response is written, and after the last.
	writing   *writing
	body      *body // nil when there is none
	minor     uint8
	keepAlive bool // the request allows it
	more      bool // another request had arrived when this one was parsed
	unsent    bool // the response could not be sent
	reused    bool // it is that of a block
}

// block is an exchange and its other memory that is kept with ReuseRequests.
type block struct {
	x         exchange // the first field: see exchange.block
	head      []byte   // what the request's strings are parts of
	header    http.Header
	resHeader http.Header
	values    []string
}

var blocks = sync.Pool{New: func() any {
	b := &block{header: make(http.Header), resHeader: make(http.Header)}
	b.x.reused = true
	return b
}}

const (
	// keepHead and keepFields bound what a block keeps.
	keepHead   = 8 << 10
	keepFields = 64
)

// Session implements bridge.Returner.
func (x *exchange) Session() conn.Session { return x.s }

// block returns the block that x is part of, nil if x was allocated by itself.
func (x *exchange) block() *block {
	if !x.reused {
		return nil
	}
	return (*block)(unsafe.Pointer(x))
}

// free keeps the block for reuse, unless other code may still refer to it: a
// caller of the context's Done or Err may be notified later, and Read of a body
// for which the client expects 100 (Continue) uses the response.
func (x *exchange) free() {
	b := x.block()
	if b == nil || x.Watched() || x.Expects() || cap(b.head) > keepHead || len(b.header) > keepFields || len(b.resHeader) > keepFields {
		return
	}
	clear(b.header)
	clear(b.resHeader)
	clear(b.values)
	x.Reset()
	x.s, x.body, x.more, x.unsent = nil, nil, false, false
	blocks.Put(b)
}

// newExchange makes the exchange of a parsed head. It copies head once; all
// strings of the request are parts of that copy.
func (s *Session) newExchange(h *http1.Request, head []byte) (*exchange, error) {
	var x *exchange
	var str string
	if s.ReuseRequests {
		b := blocks.Get().(*block)
		x = &b.x
		b.head = append(b.head[:0], head...)
		str = unsafe.String(unsafe.SliceData(b.head), len(b.head))
		x.Res.SetHeaderMap(b.resHeader)
	} else {
		x, str = new(exchange), string(head)
	}
	x.s = s
	x.Init(&s.Client, x)
	r := &x.Req
	r.Method = bridge.MethodOf(str[h.Method.Start:h.Method.End])
	r.RequestURI = str[h.Target.Start:h.Target.End]
	r.Proto, r.ProtoMajor, r.ProtoMinor = protoOf(str, h), 1, int(h.Minor)
	r.URL = &x.URL
	if err := parseTarget(r, h.Form); err != nil {
		return nil, err
	}
	if r.Host = x.URL.Host; r.Host == "" && h.HasHost {
		// RFC 9112 section 3.2.2: the host of an absolute target takes precedence.
		r.Host = str[h.Host.Start:h.Host.End]
	}
	r.Close = !h.KeepAlive
	x.Proto = protoNumber(h)
	x.minor, x.keepAlive = h.Minor, h.KeepAlive
	if h.ExpectOther {
		x.Refusal = bridge.ForExpectation
	}
	x.IsHEAD = r.Method == http.MethodHead
	x.buildHeader(h, head, str)
	if h.Chunked && h.HasTrailer {
		_, most := s.cfg.Head.Get()
		bridge.AnnounceTrailers(r, most)
	}
	x.initBody(h)
	if h.Preface {
		// As in net/http, for handlers that take over the connection
		// (x/net/http2/h2c); otherwise the connection is closed after the
		// response.
		r.ProtoMajor, r.ProtoMinor, r.Proto = 2, 0, "HTTP/2.0"
		r.ContentLength, r.Close = -1, true
	}
	return x, nil
}

// protoNumber is the version for counters. HTTP/1.2 and later are HTTP/1.1.
func protoNumber(h *http1.Request) tally.Proto {
	if h.Minor == 0 {
		return tally.HTTP10
	}
	return tally.HTTP11
}

// buildHeader fills r.Header: all fields except those that net/http moves
// elsewhere (Host, and with chunked coding Transfer-Encoding and Trailer).
//
// The values are one array, with a slice of it for each field. Go allocates a
// map of up to eight entries in two pieces, a larger one in four.
func (x *exchange) buildHeader(h *http1.Request, head []byte, s string) {
	r := &x.Req
	var values []string
	if b := x.block(); b != nil {
		r.Header, values = b.header, b.values[:0]
	} else {
		r.Header = make(http.Header, max(len(h.Fields)-1, 0))
	}
	header := r.Header
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
		// After a reused array that was too small, append moves: the earlier
		// fields keep the old one.
		n := len(values)
		values = append(values, value)
		header[key] = values[n : n+1 : n+1]
	}
	if b := x.block(); b != nil {
		b.values = values
	}
	if p, ok := header["Pragma"]; ok && p[0] == "no-cache" {
		// RFC 7234 section 5.4, as net/http does it.
		if _, ok := header["Cache-Control"]; !ok {
			header["Cache-Control"] = []string{"no-cache"}
		}
	}
}

// parseTarget fills r.URL from r.RequestURI.
func parseTarget(r *http.Request, form http1.Form) error {
	target := r.RequestURI
	if form == http1.FormOrigin && bridge.PlainTarget(r.URL, target) {
		return nil
	}
	authority := form == http1.FormAuthority
	if authority {
		target = "http://" + target
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return errTarget
	}
	*r.URL = *u
	if authority {
		r.URL.Scheme = ""
	}
	return nil
}

var errTarget = &http1.Error{Status: http.StatusBadRequest, Reason: "the request target is not a URL"}

func protoOf(s string, h *http1.Request) string {
	switch h.Minor {
	case 1:
		return "HTTP/1.1"
	case 0:
		return "HTTP/1.0"
	}
	// One space follows the target, eight bytes are the version.
	return s[h.Target.End+1 : h.Target.End+9]
}
