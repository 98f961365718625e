package forward

import (
	"bytes"
	"strconv"

	"github.com/chert-http/chert/internal/http1"
)

// Request says how a request is forwarded, beside what the request itself says. The zero
// value forwards it and says nothing of its client.
type Request struct {
	// Host is the value of the Host field, which must be a valid one; nil: the host that
	// the client asked for.
	Host []byte
	// Target is sent instead of the client's, as when a prefix is stripped or a path
	// rewritten; nil: the client's, without the scheme and host of an absolute URI.
	Target []byte

	// Peer is the address of the client's end of the connection, without a port or
	// brackets; empty for a unix socket.
	Peer []byte
	// Proto is how the client reached this server: "http" or "https".
	Proto string
	// Trusted: the peer is a proxy whose X-Forwarded-*, X-Real-IP and Forwarded fields are
	// true. They are passed on, and the peer is added to the lists. Otherwise they
	// are removed.
	Trusted    bool
	XForwarded bool // send X-Forwarded-For, -Host, -Proto and, if they are not empty, -Port and -Prefix
	// RealIP: send X-Real-IP: Client, or else what a trusted peer has sent, or Peer if it is not
	// trusted.
	RealIP bool
	// Client is the client's address as proxies have reported it.
	Client    []byte
	Forwarded bool // send Forwarded (RFC 7239)
	// Port is that of this server, which the client has connected to.
	Port []byte
	// Prefix has been cut off from the target's path. It is added to what a trusted peer sent.
	Prefix []byte

	// Via is this server's pseudonym, a token; empty: no Via is sent, and loops are not
	// detected.
	Via string
	// Version is that of HTTP by which the request came, for Via; empty: 1.0 or 1.1, as the
	// request has it.
	Version string

	// Early: the TLS handshake with the client has not ended, so the request may be a replay (RFC 8470).
	Early   bool
	Upgrade bool // pass on Upgrade, if the request has one that can be
	Expect  bool // pass on Expect: 100-continue: the body is not read before the upstream asks

	// Add has further field lines, each with its CRLF, as http1.AppendField makes them.
	Add []byte
}

// Sent is what a request that was forwarded means for its response.
type Sent struct {
	// Expected is for parsing the responses. Its Upgrade shares the memory of the head that
	// was written.
	Expected http1.Expected
	Trailers bool // for Response.Trailers
}

// AppendRequest appends the head of r for an upstream, whose spans are offsets into head.
// It always is one of HTTP/1.1.
//
// The body's framing is what r says: Content-Length if r.ContentLength is not negative,
// otherwise chunked if r.Chunked. A caller that knows more, since it has the whole of a
// chunked body, sets these two. A request from HTTP/2 is made a http1.Request by its
// caller, with the IDs of its fields.
//
// On error out is dst, and err is an *http1.Error.
func AppendRequest(dst, head []byte, r *http1.Request, o *Request) (out []byte, sent Sent, err error) {
	m := request{Request: o, head: head, r: r, dst: dst}
	if e := m.append(); e != nil {
		return dst, sent, e
	}
	sent.Trailers = m.trailers
	sent.Expected.Head = string(r.Method.Bytes(head)) == "HEAD"
	if m.upgrade.Len() > 0 {
		sent.Expected.Upgrade = m.upgrade.Bytes(m.dst)
	}
	return m.dst, sent, nil
}

// request is a head that is being written.
type request struct {
	*Request
	head []byte
	r    *http1.Request
	opts options
	dst  []byte

	host     []byte // that the client asked for
	trailers bool   // TE has "trailers"
	upgrade  http1.Span
}

func (m *request) append() *http1.Error {
	if e := m.check(); e != nil {
		return e
	}
	if e := m.requestLine(); e != nil {
		return e
	}
	if m.Host == nil {
		m.dst = appendLine(m.dst, "Host", m.host)
	} else {
		m.dst = appendLine(m.dst, "Host", m.Host)
	}
	if e := m.received(); e != nil {
		return e
	}
	m.connection()
	m.framing()
	m.client()
	if m.Via != "" {
		m.dst = append(m.dst, "Via: "...)
		if m.Version != "" {
			m.dst = append(append(m.dst, m.Version...), ' ')
		} else {
			m.dst = append(m.dst, '1', '.', '0'+min(m.r.Minor, 1), ' ')
		}
		m.dst = append(append(m.dst, m.Via...), "\r\n"...)
	}
	m.dst = append(m.dst, m.Add...)
	m.dst = append(m.dst, "\r\n"...)
	return nil
}

// check refuses what is known before anything is written.
func (m *request) check() *http1.Error {
	method := m.r.Method.Bytes(m.head)
	switch {
	case string(method) == "CONNECT" || m.r.Preface:
		return errMethod
	case m.r.Form == http1.FormAsterisk && string(method) != "OPTIONS":
		return errAsterisk
	case m.r.ExpectOther:
		return errExpect
	}
	listed, ok := m.opts.read(m.head, m.r.Fields)
	switch {
	case !ok:
		return errManyOptions
	case listed >= routing:
		// RFC 9110 section 7.6.1: a connection option must not be the name of a field
		// for all recipients. Obeying would take the credentials or the address of the
		// client from a request.
		return errListed
	}
	return nil
}

// requestLine also finds the host that the client asked for.
func (m *request) requestLine() *http1.Error {
	method, target := m.r.Method.Bytes(m.head), m.r.Target.Bytes(m.head)
	if m.r.HasHost {
		m.host = m.r.Host.Bytes(m.head)
	}
	prefix := ""
	if m.r.Form == http1.FormAbsolute {
		// RFC 9112 section 3.2.2: the Host field of such a request must be ignored.
		m.host, target = http1.SplitAbsolute(target)
		switch {
		case len(target) > 0 && target[0] == '/':
		case len(target) == 0 && string(method) == "OPTIONS":
			prefix = "*" // RFC 9112 section 3.2.4
		default:
			prefix = "/" // RFC 9112 section 3.2.1
		}
	}
	if m.Target != nil {
		prefix, target = "", m.Target
		if !validTarget(target) {
			return errTarget
		}
	}
	// RFC 9112 section 3.2: no form of a target has a fragment. Some servers cut it off
	// and others do not, so a rule about paths can be evaded with it.
	if bytes.IndexByte(target, '#') >= 0 {
		return errFragment
	}
	m.dst = append(append(m.dst, method...), ' ')
	m.dst = append(append(m.dst, prefix...), target...)
	m.dst = append(m.dst, " HTTP/1.1\r\n"...)
	return nil
}

// validTarget checks the target of a caller for what would end the request line.
func validTarget(b []byte) bool {
	for _, c := range b {
		if c <= ' ' || c == 0x7f {
			return false
		}
	}
	return len(b) > 0 && (b[0] == '/' || string(b) == "*")
}

// received writes the client's fields that are passed on.
func (m *request) received() *http1.Error {
	own, forwards, early := 0, false, false
	for i := range m.r.Fields {
		f := &m.r.Fields[i]
		name, value := f.Name.Bytes(m.head), f.Value.Bytes(m.head)
		switch f.ID {
		case http1.FieldHost, http1.FieldContentLength, http1.FieldXForwardedFor:
			continue
		case http1.FieldTE:
			m.trailers = m.trailers || m.r.Minor >= 1 && http1.HasToken(value, "trailers")
		case http1.FieldTrailer:
			// A request whose body is not chunked has no trailers to announce.
			if m.r.Chunked {
				m.dst = appendField(m.dst, m.head, f)
			}
		case http1.FieldUnknown:
			early = early || m.Early && http1.FoldEqual(name, earlyData)
		case http1.FieldVia:
			own += passages(value, m.Via)
		case http1.FieldMaxForwards:
			if method := m.r.Method.Bytes(m.head); string(method) != "OPTIONS" && string(method) != "TRACE" {
				break
			}
			if forwards {
				return errManyForwards
			}
			forwards = true
			if e := m.maxForwards(value); e != nil {
				return e
			}
			continue
		}
		if m.passes(name, f.ID) {
			m.dst = appendField(m.dst, m.head, f)
		}
	}
	if own >= 2 {
		return errLoop
	}
	if m.Early && !early {
		m.dst = append(m.dst, earlyData+": 1\r\n"...) // RFC 8470 section 5.1
	}
	return nil
}

func (m *request) passes(name []byte, id http1.FieldID) bool {
	switch kindOf(name, id) {
	case hop:
		return false
	case forwarded:
		if id == http1.FieldXRealIP && m.RealIP && len(m.Client) > 0 {
			return false // a proxy that does not set it passes on what a client has made up
		}
		return m.Trusted && !(m.joinsPrefix() && http1.FoldEqual(name, xForwardedPrefix))
	case routing:
		return true
	}
	return !m.opts.has(name) && !imitates(name)
}

// maxForwards writes the field with one less (RFC 9110 section 7.6.2).
func (m *request) maxForwards(value []byte) *http1.Error {
	n, err := strconv.ParseUint(string(value), 10, 31) // does not allocate unless it fails
	switch {
	case err != nil:
		return errMaxForwards
	case n == 0:
		return ErrLastHop
	}
	m.dst = append(m.dst, "Max-Forwards: "...)
	m.dst = append(strconv.AppendUint(m.dst, n-1, 10), "\r\n"...)
	return nil
}

// connection writes what is for the connection to the upstream.
func (m *request) connection() {
	list := m.upgradeList()
	switch {
	case list && m.trailers:
		m.dst = append(m.dst, "Connection: Upgrade, TE\r\n"...)
	case list:
		m.dst = append(m.dst, "Connection: Upgrade\r\n"...)
	case m.trailers:
		// RFC 9110 section 10.1.4: a sender of TE must also list it.
		m.dst = append(m.dst, "Connection: TE\r\n"...)
	}
	if m.trailers {
		// The only value that may be passed on: codings are for this connection.
		m.dst = append(m.dst, "TE: trailers\r\n"...)
	}
}

func (m *request) framing() {
	switch {
	case m.r.ContentLength >= 0:
		m.dst = append(m.dst, "Content-Length: "...)
		m.dst = append(strconv.AppendInt(m.dst, m.r.ContentLength, 10), "\r\n"...)
	case m.r.Chunked:
		m.dst = append(m.dst, "Transfer-Encoding: chunked\r\n"...)
	default:
		switch string(m.r.Method.Bytes(m.head)) {
		case "POST", "PUT", "PATCH":
			// RFC 9110 section 8.6: a method that anticipates content should have a length.
			m.dst = append(m.dst, "Content-Length: 0\r\n"...)
		}
		return
	}
	if m.r.ExpectContinue && m.Expect && m.r.ContentLength != 0 {
		m.dst = append(m.dst, "Expect: 100-continue\r\n"...)
	}
}

// passages counts the elements of a Via field that have the pseudonym:
//
//	[ protocol-name "/" ] protocol-version RWS received-by [ RWS comment ]
func passages(via []byte, pseudonym string) (n int) {
	if pseudonym == "" {
		return 0
	}
	var elem []byte
	for len(via) > 0 {
		elem, via = http1.NextElement(via)
		i := bytes.IndexAny(elem, " \t")
		if i < 0 {
			continue
		}
		by := bytes.TrimLeft(elem[i:], " \t")
		if i = bytes.IndexAny(by, " \t"); i >= 0 {
			by = by[:i]
		}
		if http1.FoldEqual(by, pseudonym) {
			n++
		}
	}
	return n
}
