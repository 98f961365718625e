//go:build linux || darwin

package fuzz

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/chert-http/chert/test/internal/unlike"
)

// This file compares how net/http and chert played a script, and has the
// intended differences. Whether one may occur is derived from what the grammar
// has made and what the handler was to do. Some need two requests: how a
// connection ends shows only at the next request.

// reply is a response as bytes.
type reply struct {
	interim string // 1xx before it
	head    string
	body    string // without the chunked coding, if it could be taken off
	coded   string // as received
	end     string // after a chunked body's data: the trailer section
	status  int
	whole   bool
}

// look is the observation of one request.
type look struct {
	call  *call
	reply *reply
}

// looks divides an outcome by requests.
func (s *script) looks(o *outcome) (all []*look) {
	calls, wire := o.calls, o.wire
	for i := 0; len(calls) > 0 || wire != ""; i++ {
		l := &look{}
		if len(calls) > 0 && (calls[0].request == i || calls[0].request < 0 || i >= len(s.requests)) {
			l.call, calls = calls[0], calls[1:]
		}
		method := "GET"
		if i < len(s.requests) {
			method = s.methodThere(i)
		}
		l.reply, wire = cutReply(wire, method, l.call == nil)
		if l.call != nil && l.call.hijacked && l.reply != nil {
			// What follows is the handler's, whatever it contains.
			l.reply.body, l.reply.coded, wire = l.reply.body+wire, l.reply.coded+wire, ""
		}
		all = append(all, l)
	}
	return all
}

// cutReply cuts the response to method off the wire. bare: no handler was
// called for it.
func cutReply(wire, method string, bare bool) (*reply, string) {
	if wire == "" {
		return nil, ""
	}
	r := &reply{}
	for {
		head, rest, ok := strings.Cut(wire, "\r\n\r\n")
		if !ok || len(head) < len("HTTP/1.1 200") || !strings.HasPrefix(head, "HTTP/1.") {
			r.head = wire
			return r, ""
		}
		wire = rest
		r.status, _ = strconv.Atoi(head[9:12])
		if r.status < 200 && r.status != 101 {
			r.interim += head + "\r\n\r\n"
			if wire == "" {
				return r, ""
			}
			continue
		}
		r.head = head + "\r\n"
		break
	}
	switch length, err := strconv.ParseInt(r.field("Content-Length"), 10, 32); {
	case bare && r.field("Date") == "":
		// For a refused request the server did not know the method.
		r.body, wire, r.whole = wire, "", true
	case method == "HEAD" || r.status == 101 || r.status == 204 || r.status == 304:
		r.whole = true
	case strings.Contains(r.head, "\r\nTransfer-Encoding: chunked\r\n"):
		return r, r.cutChunks(wire)
	case err == nil && length >= 0 && int(length) <= len(wire):
		r.body, wire, r.whole = wire[:length], wire[length:], true
	default:
		r.body, wire, r.whole = wire, "", err != nil || length < 0
	}
	r.coded = r.body
	return r, wire
}

// cutChunks takes a chunked body off the wire and returns what follows. If the
// body is not complete it is all of the wire.
func (r *reply) cutChunks(wire string) string {
	rest := wire
	r.coded = wire
	for {
		line, data, ok := strings.Cut(rest, "\r\n")
		n, err := strconv.ParseUint(line, 16, 32)
		if !ok || err != nil {
			return ""
		}
		if rest = data; n == 0 {
			break
		}
		if len(rest) < int(n)+2 {
			r.body += rest[:min(len(rest), int(n))]
			return ""
		}
		r.body, rest = r.body+rest[:n], rest[n+2:]
	}
	for {
		line, next, ok := strings.Cut(rest, "\r\n")
		if !ok {
			return ""
		}
		r.end += line + "\r\n"
		if rest = next; line == "" {
			break
		}
	}
	r.whole, r.coded = true, wire[:len(wire)-len(rest)]
	return rest
}

// field returns the value of the head's first field with that name.
func (r *reply) field(name string) string {
	for line := range strings.SplitSeq(r.head, "\r\n") {
		if v, ok := strings.CutPrefix(line, name+": "); ok {
			return v
		}
	}
	return ""
}

// without returns the head without the fields of that name.
func (r *reply) without(name string) string {
	var b strings.Builder
	for line := range strings.SplitAfterSeq(r.head, "\r\n") {
		if !strings.HasPrefix(line, name+": ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func (r *reply) String() string {
	if r == nil {
		return "no answer"
	}
	return fmt.Sprintf("interim %s head %s body %s (whole %t)", glance(r.interim), glance(r.head), glance(r.coded), r.whole)
}

func (l *look) String() string {
	if l == nil {
		return "\tnothing"
	}
	return "\t" + l.call.String() + "\n\t" + l.reply.String()
}

func (l *look) equals(m *look) bool { return l.String() == m.String() && l.exact() == m.exact() }

// exact describes the response to the last byte.
func (l *look) exact() string {
	if l == nil || l.reply == nil {
		return ""
	}
	return l.reply.interim + l.reply.head + l.reply.coded
}

// meeting is two looks at the same request.
type meeting struct {
	s        *script
	i        int
	r        *request
	std, our *look
	last     bool // chert has ended the connection after this request
}

// before returns the request before this one, an empty one before the first.
func (m *meeting) before() *request {
	if i := min(m.i, len(m.s.requests)) - 1; i >= 0 {
		return m.s.requests[i]
	}
	return &request{}
}

// difference recognises an intended difference.
type difference struct {
	d *unlike.Difference
	// level removes the difference from the observation.
	level func(m *meeting) bool
	// over reports that the difference explains the observation, and that the
	// rest of the connection cannot be compared.
	over func(m *meeting) bool
}

// metDifferences counts, to find out whether a difference still exists.
var metDifferences = map[*unlike.Difference]int{}

// compare describes how ours differs from net/http's outcome, "" if it does
// not, or only as intended.
func (s *script) compare(std, our *outcome) string {
	a, b, all := s.looks(std), s.looks(our), differences
	for i := range max(len(a), len(b), len(s.requests)) {
		m := &meeting{s: s, i: i, r: &request{}, std: copyLook(at(a, i)), our: copyLook(at(b, i))}
		if i < len(s.requests) {
			m.r = s.requests[i]
		}
		m.last = len(b) <= i+1
		if m.equal() {
			continue
		}
		for _, d := range all {
			if d.level != nil && d.level(m) {
				metDifferences[d.d]++
			}
		}
		if m.equal() {
			continue
		}
		for _, d := range all {
			if d.over != nil && d.over(m) {
				metDifferences[d.d]++
				return ""
			}
		}
		return fmt.Sprintf("request %d differs\nnet/http:\n%v\nchert:\n%v\n%s", i, m.std, m.our, firstDifference(m.std.exact(), m.our.exact()))
	}
	return ""
}

func firstDifference(a, b string) string {
	if a == b {
		return "the answers are equal"
	}
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	return fmt.Sprintf("from byte %d on:\n\t%s\n\t%s", at, glance(a[at:]), glance(b[at:]))
}

func copyLook(l *look) *look {
	c := &look{}
	if l == nil {
		return c
	}
	if l.call != nil {
		call := *l.call
		call.did = slices.Clone(call.did)
		c.call = &call
	}
	if l.reply != nil {
		r := *l.reply
		c.reply = &r
	}
	return c
}

func (m *meeting) equal() bool { return m.std.equals(m.our) }

// strict returns the parts of request i for which chert may refuse it. Only the
// status and the rule of the parts count.
func (s *script) strict(i int) (all []part) {
	if i >= len(s.requests) {
		return nil
	}
	r, method := s.requests[i], s.methodThere(i)
	add := func(p ...part) {
		for _, p := range p {
			if p.strict != 0 {
				all = append(all, p)
			}
		}
	}
	add(r.method, r.version, r.host)
	add(r.fields...)
	add(r.body.fields...)
	switch path := strings.HasPrefix(r.target.text, "/"); {
	case path || method != "CONNECT":
		add(r.target)
	case !slices.Contains(authorities, r.target.text):
		add(stricter(400, unlike.TargetForm, "")...)
	}
	switch s.leadThere(i) {
	case "", "\r\n", "\r\n\r\n", "X":
	default:
		add(stricter(400, unlike.EmptyLineFirst, "")...)
	}
	old, coded := r.version.text == "HTTP/1.0", r.has("Transfer-Encoding:")
	if !old && !r.has("Host:") {
		add(wrong(400, "")...)
	}
	if old && coded {
		add(stricter(400, unlike.Framing, "")...)
	}
	for _, f := range r.fields {
		if coded && slices.Contains(barredTrailers, f.text) {
			add(stricter(400, unlike.Trailers, "")...)
		}
	}
	if strings.Count(r.head, "\r\n")-2 > 128 {
		add(stricter(431, unlike.HeadLimits, "")...)
	}
	if len(r.head) > headLimit {
		add(stricter(431, unlike.HeadLimits, "")...)
	}
	return all
}

// leadThere returns what arrives before the request line and the method.
func (s *script) leadThere(i int) string {
	lead := s.requests[i].lead.text
	if i > 0 {
		lead = lead[min(s.requests[i-1].body.swallows, len(lead)):]
	}
	return lead
}

// onlyConnection reports whether the responses differ only in the field
// Connection.
func (m *meeting) onlyConnection() bool {
	a, b := m.std.reply, m.our.reply
	return a != nil && b != nil && a.without("Connection") == b.without("Connection") && a.interim == b.interim && a.coded == b.coded
}

// refusal reports whether the server itself has refused the request.
func (l *look) refusal() bool {
	return l.call == nil && l.reply != nil && l.reply.status >= 400 && l.reply.field("Connection") == "close" && l.reply.interim == ""
}

var differences = []difference{
	{
		// RFC 9110 section 15.2: no 1xx to an HTTP/1.0 client.
		d:     unlike.No1xxTo10,
		level: levelInterim,
	},
	{
		// RFC 9110 section 8.6: a Content-Length that is not a number is left
		// out; net/http logs it, and sends it.
		d:     unlike.ResponseLength,
		level: levelBadLength,
	},
	{
		// Without it chert knows the length and can keep an HTTP/1.0 connection.
		d: unlike.ResponseLength,
		over: func(m *meeting) bool {
			bad := func(r *request) bool {
				return r.version.text == "HTTP/1.0" && r.badLength()
			}
			return bad(m.r) && m.onlyConnection() && m.std.call.String() == m.our.call.String() || bad(m.before()) && m.std.call == nil && m.std.reply == nil
		},
	},
	{
		d:     unlike.ReadFromFraming,
		level: levelReadFrom,
	},
	{
		// RFC 9112 section 7.1: they mean nothing; net/http makes them at 2048 bytes of a large
		// string, and elsewhere in a copy.
		d:     unlike.ChunkSizes,
		level: levelChunks,
	},
	{
		// The text of a refusal gives the reason, in chert's words in the body,
		// in net/http's in the status line.
		d: unlike.RefusalText,
		over: func(m *meeting) bool {
			return m.std.refusal() && m.our.refusal() && m.std.reply.status == m.our.reply.status
		},
	},
	{
		d:    unlike.Stricter,
		over: refusedStrictly,
	},
	{
		d:    unlike.StricterChunks,
		over: overStrictChunks,
	},
	{
		d:    unlike.LooserChunks,
		over: overLooserChunks,
	},
	{
		// RFC 9110 section 7.6.1: several words are no connection option; both close for "close"
		// among them, but net/http leaves Request.Close false.
		d:     unlike.ConnectionOptions,
		level: levelCloseAmongWords,
	},
	{
		// RFC 9110 section 7.6.1, RFC 9112 section 9.3: options are elements of one list, close
		// wins, and close among words ends any connection; net/http looks for words, and for some
		// of them in the first field only.
		d:    unlike.ConnectionOptions,
		over: overOptions,
	},
	{
		// RFC 9112 section 2.2: an empty line before a request is skipped; net/http does so after
		// a POST only.
		d:    unlike.EmptyLineFirst,
		over: overLeadingCRLF,
	},
	{
		// RFC 9110 section 5.6.1.2: empty elements of a list are ignored; net/http refuses a
		// Transfer-Encoding that has some with 501.
		d:    unlike.EmptyListElements,
		over: overEmptyCodings,
	},
	{
		d:     unlike.ReadBehindHead,
		level: levelBehindHead,
	},
	{
		// RFC 9112 section 8: after a body that the client has cut short no
		// request can follow, and chert sends Connection: close; net/http does
		// not if the handler has reached the end.
		d:     unlike.CutBody,
		level: levelCutBody,
	},
	{
		// A line that the client has cut short may count as malformed, or as
		// the end.
		d:     unlike.CutBody,
		level: levelCutLine,
	},
	{
		d:     unlike.CloseError,
		level: levelCloseError,
	},
	{
		// RFC 9110 section 10.1.1: a client that expects 100 may wait for it,
		// so Close does not wait for a body that was not requested; net/http's
		// does, and then has the trailers, and less for a hijacker. But then
		// chert keeps the connection if Close has read everything, net/http
		// only if Read has.
		d:    unlike.ExpectClose,
		over: overCloseUnasked,
	},
	{
		// RFC 9110 section 10.1.1: the connection ends if the client may not
		// have been invited to send its body; net/http forgets that when the
		// handler has replaced Request.Body.
		d: unlike.RequestChanged,
		over: func(m *meeting) bool {
			replaced := func(r *request) bool { return r.has("Expect:") && r.does("limit") && r.body.bytes != "" }
			return replaced(m.r) && m.bothAnswer() && m.last && m.std.call.saw == m.our.call.saw ||
				replaced(m.before()) && m.our.call == nil && m.our.reply == nil
		},
	},
	{
		// RFC 9110 section 5.3: several fields Expect make one list; net/http
		// uses the first, here an empty one.
		d:    unlike.ExpectList,
		over: overExpectLines,
	},
	{
		// A client that ends within a request's first bytes gets 400 as it does later in the head;
		// net/http closes if there are less than four.
		d: unlike.CutHead,
		over: func(m *meeting) bool {
			return m.s.client.cut >= 0 && m.i < len(m.s.requests) && len(m.s.bytes()[m.i])-min(m.before().body.swallows, 2) < 4 &&
				m.std.call == nil && m.std.reply == nil && m.our.refusal() && m.our.reply.status == 400
		},
	},
	{
		d:     unlike.EarlyEnd,
		level: levelEarlyEnd,
		over: func(m *meeting) bool {
			return m.r.does("read ") && m.r.body.chunked && m.r.has("Expect:") && m.onlyConnection() && m.std.call.String() == m.our.call.String()
		},
	},
	{
		// http.MaxBytesReader notifies net/http's own ResponseWriter, and
		// cannot notify any other, that the connection must be closed.
		d:    unlike.MaxBytes,
		over: overMaxBytes,
	},
	{
		d:    unlike.ReadFromHead,
		over: overReadFromHead,
	},
	{
		// RFC 9112 section 9.3: bytes beyond Content-Length would be read as
		// the next response; net/http's ReadFrom sends them.
		d: unlike.ReadFromLength,
		over: func(m *meeting) bool {
			ours, ok := shortReadFrom(m)
			return ok && (strings.HasSuffix(ours, " ok") || strings.HasSuffix(ours, http.ErrContentLength.Error()))
		},
	},
	{
		// RFC 9110 section 15.5.1: for a handler that has met a malformed body
		// and writes nothing 400 is sent, with net/http 200.
		d:    unlike.BodyRefusal,
		over: overUnreadRefusal,
	},
	{
		// net/http looks for the next request in the rest of a body that is
		// malformed or long, if the handler is full-duplex or has replaced
		// Request.Body; chert ends the connection, as both do otherwise (RFC
		// 9112 section 9.3).
		d: unlike.FullDuplex,
		over: func(m *meeting) bool {
			remains := func(r *request) bool {
				return (r.does("full") || r.does("limit")) && (!r.body.sound || len(r.body.bytes) > maxDrained || m.s.client.cut >= 0)
			}
			return remains(m.before()) && m.our.call == nil && m.our.reply == nil ||
				remains(m.r) && m.last && m.onlyConnection() && m.bothAnswer() && m.std.call.String() == m.our.call.String()
		},
	},
	{
		// Go.dev/issue/68560: net/http panics and drops the connection if a full-duplex handler
		// leaves a body unread.
		d:    unlike.FullDuplex,
		over: overFullDuplex,
	},
	{
		d:    unlike.AbortedAnswer,
		over: overAborted,
	},
	{
		// net/http drops the part of a body that it has buffered when the
		// connection is hijacked; chert sends it.
		d:    unlike.HijackWrite,
		over: overHijacked,
	},
}

// mayRegroup reports whether the pieces in which the body goes out may differ.
func (m *meeting) mayRegroup() bool {
	for _, op := range m.r.program {
		switch verb, _, _ := strings.Cut(op, " "); verb {
		case "from", "file", "whole", "tail":
			return true
		case "string":
			if written(op) > 2048 {
				return true
			}
		}
	}
	return false
}

// bothAnswer reports whether there are two responses of handlers to compare.
func (m *meeting) bothAnswer() bool {
	return m.std.call != nil && m.our.call != nil && m.std.reply != nil && m.our.reply != nil
}

func levelInterim(m *meeting) bool {
	if m.r.version.text != "HTTP/1.0" || m.std.reply == nil || m.std.reply.interim == "" || m.our.reply != nil && m.our.reply.interim != "" {
		return false
	}
	if m.std.reply.interim = ""; m.std.reply.head == "" {
		m.std.reply = nil
	}
	return true
}

// badLength reports whether the handler sets an invalid Content-Length.
func (r *request) badLength() bool {
	return r.does("set Content-Length x") || r.does("set Content-Length -1")
}

func levelBadLength(m *meeting) bool {
	if !m.bothAnswer() || !m.r.badLength() {
		return false
	}
	v := m.std.reply.field("Content-Length")
	if v == "x" || v == "-1" {
		m.std.reply.head = m.std.reply.without("Content-Length")
	}
	return m.levelLength() || v != ""
}

// levelLength removes the framing where chert found the length and net/http did
// not.
func (m *meeting) levelLength() bool {
	a, b := m.std.reply, m.our.reply
	if !a.whole || !b.whole || b.field("Content-Length") == "" || a.field("Content-Length") != "" {
		return false
	}
	a.head, b.head = a.without("Transfer-Encoding"), b.without("Content-Length")
	a.coded, b.coded = a.body, b.body
	return true
}

func levelReadFrom(m *meeting) bool { return m.bothAnswer() && m.r.readsFrom(512) && m.levelLength() }

func levelChunks(m *meeting) bool {
	if !m.bothAnswer() || !m.mayRegroup() || !m.std.reply.whole || !m.our.reply.whole || m.std.reply.end == "" || m.our.reply.end == "" {
		return false
	}
	for _, r := range []*reply{m.std.reply, m.our.reply} {
		r.coded = r.body + r.end
	}
	return true
}

func refusedStrictly(m *meeting) bool {
	return m.our.refusal() && slices.ContainsFunc(m.s.strict(m.i), func(p part) bool { return p.strict == m.our.reply.status })
}

// overAborted: what has arrived must be the beginning of the same response.
func overAborted(m *meeting) bool {
	if m.std.call == nil || m.our.call == nil || !m.sameButReads() || !m.mayRegroup() || !m.r.aborts() {
		return false
	}
	a, b := m.std.reply, m.our.reply
	if a == nil || b == nil {
		return true
	}
	return a.interim == b.interim && (a.head == "" || b.head == "" || a.head == b.head) && (strings.HasPrefix(a.body, b.body) || strings.HasPrefix(b.body, a.body))
}

func overHijacked(m *meeting) bool {
	if !m.bothAnswer() || !m.std.call.hijacked || !m.sameButReads() {
		return false
	}
	wrote := false
	for _, op := range m.r.program {
		if strings.HasPrefix(op, "hijack") {
			break
		}
		wrote = wrote || written(op) > 0
	}
	a, b := *m.std.reply, *m.our.reply
	for _, r := range []*reply{&a, &b} {
		if r.head = r.without("Content-Type"); m.broken() {
			r.head = r.without("Connection") // see cut-body
		}
	}
	return wrote && a.interim == b.interim && a.head == b.head
}

// broken reports whether a handler that reads the body does not receive it
// whole.
func (m *meeting) broken() bool { return !m.r.body.sound || m.r.body.strict || m.s.client.cut >= 0 }

func overStrictChunks(m *meeting) bool {
	if m.before().body.strict && m.our.call == nil && m.our.reply == nil {
		return true // it was met after the response
	}
	if !m.r.body.strict || !m.r.has("Transfer-Encoding:") || !m.last {
		return false
	}
	if m.our.refusal() {
		return m.our.reply.status == 400 // the handler has written nothing, so chert responds
	}
	if m.our.call == nil && m.std.call == nil {
		return m.r.target.text == "*" // the server itself has read it
	}
	return m.our.call != nil && m.std.call != nil && m.our.call.saw == m.std.call.saw
}

func overLooserChunks(m *meeting) bool {
	if m.before().body.looser && m.std.call == nil && (m.std.reply == nil || m.std.refusal()) {
		return true // it was met after the response
	}
	if m.r.body.looser && m.r.target.text == "*" && m.our.call == nil && m.std.call == nil {
		return true // the server itself has read it
	}
	return m.r.body.looser && m.r.has("Transfer-Encoding:") && m.our.call != nil && m.std.call != nil && m.our.call.saw == m.std.call.saw
}

func overEmptyCodings(m *meeting) bool {
	return len(m.r.body.fields) == 1 && slices.Contains(emptyElements, m.r.body.fields[0].text) &&
		m.std.refusal() && m.std.reply.status == 501 && m.our.call != nil
}

func levelBehindHead(m *meeting) bool {
	if m.std.call == nil || m.our.call == nil {
		return false
	}
	met := false
	for i := range min(len(m.std.call.did), len(m.our.call.did)) {
		const closed = "\"\" http: invalid Read on closed Body"
		theirs, ours := m.std.call.did[i], m.our.call.did[i]
		op, result, _ := strings.Cut(ours, ": ")
		ok := theirs == op+": "+closed && result == "\"\" EOF" && slices.ContainsFunc(m.our.call.did[:i], isRead)
		if m.broken() && m.r.does("read 0") && theirs == op+": "+closed {
			ok = ok || result == "\"\" malformed" || result == "\"\" cut short" // the other has met it
		}
		if m.broken() && result == closed {
			ok = ok || slices.Contains([]string{op + ": \"\" malformed", op + ": \"\" cut short", op + ": \"\" EOF"}, theirs)
		}
		if ok {
			m.our.call.did[i], met = theirs, true
		}
	}
	return met
}

func levelCutBody(m *meeting) bool {
	if m.s.client.cut < 0 && !m.r.body.short || m.r.body.chunked || m.r.body.bytes == "" || !m.last || !m.onlyConnection() ||
		m.our.reply.field("Connection") != "close" && m.std.reply.field("Connection") != "close" {
		return false
	}
	m.our.reply.head, m.std.reply.head = m.our.reply.without("Connection"), m.std.reply.without("Connection")
	return true
}

// options is how the two read the fields Connection of a request.
type options struct {
	closes              bool // an element is "close"
	stdCloses, stdKeeps bool // for net/http: a word of the first field, or closes
	ourCloses, ourKeeps bool // for chert
}

func (r *request) options() (o options) {
	first := true
	for _, line := range strings.Split(r.head, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		if !strings.EqualFold(name, "Connection") {
			continue
		}
		words := strings.FieldsFunc(value, func(c rune) bool { return c == ' ' || c == '\t' || c == ',' })
		for _, word := range words {
			closes := strings.EqualFold(word, "close")
			o.ourCloses = o.ourCloses || closes
			o.stdCloses = o.stdCloses || closes && first
			o.stdKeeps = o.stdKeeps || strings.EqualFold(word, "keep-alive") && first
		}
		for element := range strings.SplitSeq(value, ",") {
			element = strings.Trim(element, " \t")
			o.closes = o.closes || strings.EqualFold(element, "close")
			o.ourKeeps = o.ourKeeps || strings.EqualFold(element, "keep-alive")
		}
		first = false
	}
	o.stdCloses = o.stdCloses || o.closes
	o.ourKeeps = o.ourKeeps && !o.ourCloses
	return o
}

// optionsDiffer reports whether one keeps the connection and the other does
// not.
func (r *request) optionsDiffer() bool {
	o := r.options()
	if r.version.text == "HTTP/1.0" {
		return o.stdKeeps != o.ourKeeps
	}
	return o.stdCloses != o.ourCloses
}

func overOptions(m *meeting) bool {
	if m.before().optionsDiffer() && m.ended() {
		return true
	}
	if m.r.optionsDiffer() && m.std.call == nil && m.our.call == nil && m.onlyConnection() {
		return true
	}
	if o := m.r.options(); o.ourCloses && !o.closes && m.r.does("close") && m.bothAnswer() && m.our.call.hijacked {
		return m.std.call.saw == m.our.call.saw // Close leaves a body unread where the request ends the connection
	}
	return m.r.optionsDiffer() && m.bothAnswer() && m.std.call.saw == m.our.call.saw && m.std.reply.status == m.our.reply.status
}

// ended reports whether one of the two has ended the connection before this
// request.
func (m *meeting) ended() bool {
	return m.std.call == nil && m.std.reply == nil || m.our.call == nil && m.our.reply == nil
}

func levelCloseAmongWords(m *meeting) bool {
	o := m.r.options()
	if m.std.call == nil || m.our.call == nil || o.closes || !o.ourCloses || m.std.call.saw == m.our.call.saw ||
		strings.Replace(m.our.call.saw, " close true ", " close false ", 1) != m.std.call.saw {
		return false
	}
	m.our.call.saw = m.std.call.saw
	return true
}

func overLeadingCRLF(m *meeting) bool {
	if m.i >= len(m.s.requests) {
		return false
	}
	lead := m.s.leadThere(m.i)
	return (lead == "\r\n" || lead == "\r\n\r\n") && m.std.refusal() && m.std.reply.status == 400 && !m.our.refusal()
}

func levelCloseError(m *meeting) bool {
	if !m.broken() || m.std.call == nil || m.our.call == nil {
		return false
	}
	met := false
	for i, a := range m.std.call.did {
		if i < len(m.our.call.did) && strings.HasPrefix(a, "close: ") && strings.HasPrefix(m.our.call.did[i], "close: ") && m.our.call.did[i] != a {
			m.our.call.did[i] = a
			met = true
		}
	}
	return met
}

func overMaxBytes(m *meeting) bool {
	if m.before().does("limit") && m.before().body.bytes != "" && m.std.call == nil && m.std.reply == nil {
		return true // the handler's Connection had the same effect
	}
	tooLarge := func(c *call) bool { return c != nil && strings.Contains(c.String(), " too large") }
	if m.std.call == nil && m.our.call == nil {
		return m.r.target.text == "*" && len(m.r.body.bytes) > 4<<10 && m.onlyConnection() // net/http's own handler uses it
	}
	return tooLarge(m.std.call) && tooLarge(m.our.call) && m.std.call.saw == m.our.call.saw
}

func overFullDuplex(m *meeting) bool {
	// It may panic at the beginning of the next request or at the end of a
	// later one's body.
	for _, r := range m.s.requests[:min(m.i, len(m.s.requests))] {
		if r.does("full") && r.body.bytes != "" {
			return m.std.reply == nil || m.std.reply.head == "" || m.std.call != nil && m.our.call != nil && len(m.std.call.did) < len(m.our.call.did)
		}
	}
	return false
}

// overReadFromHead: the responses are equal, and so is everything that the
// handler did except its reads.
func overReadFromHead(m *meeting) bool {
	old := func(r *request) bool { return r.version.text == "HTTP/1.0" && r.has("Connection:") && r.readsFrom(512) }
	if old(m.before()) && m.std.call == nil && m.std.reply == nil {
		return true // without a length net/http could not keep it
	}
	if !m.bothAnswer() || !m.r.readsFrom(512) || m.r.body.bytes == "" && !old(m.r) || !m.onlyConnection() {
		return false
	}
	return m.sameButReads()
}

func isRead(note string) bool { return strings.HasPrefix(note, "read") }

// butReads returns what was done except reads of the request's body.
func (c *call) butReads() []string {
	return slices.DeleteFunc(slices.Clone(c.did), func(note string) bool {
		return isRead(note) || strings.HasPrefix(note, "close") || strings.HasPrefix(note, "trailers")
	})
}

// sameButReads reports whether the handlers saw and did the same, except for
// reads of the body.
func (m *meeting) sameButReads() bool {
	return m.std.call.saw == m.our.call.saw && slices.Equal(m.std.call.butReads(), m.our.call.butReads())
}

// shortReadFrom finds the first ReadFrom that chert has not carried out as
// net/http has; all must be equal up to it. It returns chert's note of it.
func shortReadFrom(m *meeting) (ours string, ok bool) {
	if m.std.call == nil || m.our.call == nil || !m.r.does("set Content-Length") && !m.r.does("add Content-Length") ||
		m.std.reply != nil && m.our.reply != nil && m.std.reply.head != m.our.reply.head {
		return "", false
	}
	a, b := m.std.call.butReads(), m.our.call.butReads()
	for i := range min(len(a), len(b)) {
		if b[i] != a[i] {
			verb, _, _ := strings.Cut(strings.ReplaceAll(b[i], ":", ""), " ")
			return b[i], slices.Contains([]string{"from", "file", "whole", "tail"}, verb)
		}
	}
	return "", false
}

func overUnreadRefusal(m *meeting) bool {
	a, b := m.std.reply, m.our.reply
	if a == nil || b == nil || !m.last || !m.broken() || a.status != 200 || b.status != 400 || b.body != "" {
		return false
	}
	if m.std.call == nil && m.our.call == nil {
		return m.r.target.text == "*"
	}
	return m.bothAnswer() && m.std.call.String() == m.our.call.String() && strings.Contains(m.our.call.String(), "malformed")
}

func levelEarlyEnd(m *meeting) bool {
	if !m.r.does("read ") && !m.r.does("close") || !m.r.body.chunked || m.std.call == nil || m.our.call == nil {
		return false
	}
	isTrailers := func(note string) bool { return strings.HasPrefix(note, "trailers") }
	n := len(m.std.call.did) + len(m.our.call.did)
	m.std.call.did, m.our.call.did = slices.DeleteFunc(m.std.call.did, isTrailers), slices.DeleteFunc(m.our.call.did, isTrailers)
	return n > len(m.std.call.did)+len(m.our.call.did)
}

func overCloseUnasked(m *meeting) bool {
	if m.before().does("close") && m.before().has("Expect:") && m.std.call == nil && m.std.reply == nil {
		return true // it was a 101, which does not announce the end of the connection
	}
	i := slices.Index(m.r.program, "close")
	if i < 0 || !m.r.has("Expect:") || m.std.call == nil || m.our.call == nil || m.std.call.saw != m.our.call.saw {
		return false
	}
	if m.onlyConnection() {
		return true
	}
	for _, op := range m.r.program[:i] {
		if strings.HasPrefix(op, "read") && op != "read 0" {
			return false
		}
	}
	return m.our.call.hijacked && m.r.does("hijack rest") || m.r.body.chunked
}

func levelCutLine(m *meeting) bool {
	if m.s.client.cut < 0 || !m.r.body.chunked || m.std.call == nil || m.our.call == nil {
		return false
	}
	met := false
	for i := range min(len(m.std.call.did), len(m.our.call.did)) {
		theirs, ours := m.std.call.did[i], m.our.call.did[i]
		if theirs != ours && strings.TrimSuffix(theirs, " cut short") == strings.TrimSuffix(ours, " malformed") ||
			theirs != ours && strings.TrimSuffix(theirs, " malformed") == strings.TrimSuffix(ours, " cut short") {
			m.our.call.did[i], met = theirs, true
		}
	}
	return met
}

func overExpectLines(m *meeting) bool {
	differ := func(r *request) bool {
		_, list, ok := strings.Cut(r.head, "\r\nExpect:\r\n")
		return ok && strings.Contains("\r\n"+strings.ToLower(list), "\r\nexpect:")
	}
	if differ(m.before()) && m.our.call == nil && m.our.reply == nil {
		return true
	}
	return differ(m.r) && m.std.call != nil && m.our.call != nil && m.std.call.saw == m.our.call.saw
}
