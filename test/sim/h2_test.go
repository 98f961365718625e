//go:build linux

package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// stream is a request over HTTP/2 whose stream is not closed.
type stream struct {
	asked
	number  uint32
	content []byte // of the request, to be sent
	trailer bool   // after it
	sent    bool   // END_STREAM
	window  int64  // for content

	want    []byte // of the response, to be received
	headed  bool
	ended   bool  // the response
	refused bool  // by a status
	room    int64 // of the window that the server has
	returns int   // of the window, to be returned
}

func newH2Client(p peer) model {
	p.protos = []string{"h2"}
	return &h2Client{peer: p}
}

// h2Client plays a client of HTTP/2 (RFC 9113).
type h2Client struct {
	peer
	next    uint64
	number  uint32 // of the next stream
	blind   uint32 // of the first after the server's SETTINGS
	streams []*stream
	// gone has the streams that the client has reset; what was under way for them may come.
	gone map[uint32]bool

	encoded bytes.Buffer
	enc     *hpack.Encoder
	dec     *hpack.Decoder
	block   []byte // header block that goes on in CONTINUATION
	blockOf uint32
	blockAt http2.Flags

	window, initial int64 // for what the client sends
	most            int   // streams
	room, roomEach  int64 // for what the server sends
	smaller         int64 // what roomEach becomes with the server's acknowledgement
	unsettled       int   // SETTINGS without it
	returns         int
	useless         int // frames that the server may count as such
	pings           []uint64
	last            uint32 // of GOAWAY
}

func (c *h2Client) state() string {
	s := fmt.Sprintf("windows %d and %d", c.window, c.room)
	for _, st := range c.streams {
		s += fmt.Sprintf("; stream %d: %+v, %d bytes to send, window %d, sent %v, %d bytes to receive, room %d, ended %v", st.number,
			st.asked, len(st.content), st.window, st.sent, len(st.want), st.room, st.ended)
	}
	return s
}

// Step implements sim.Actor.
func (c *h2Client) Step() (did bool) {
	if c.over || c.paused() {
		return false
	}
	if c.s == nil {
		return c.connect()
	}
	if c.d.OneIn(2000) {
		return c.misbehave()
	}
	for _, f := range [...]func() bool{c.ask, c.upload, c.give, c.push, c.arrive, c.receive} {
		if f() {
			did = true
		}
		if c.s == nil || c.over {
			return true
		}
	}
	if did {
		c.maybePause()
	}
	return did
}

func (c *h2Client) connect() bool {
	if c.left <= 0 {
		c.over = true
		return false
	}
	if !c.dial() {
		return true
	}
	c.number, c.blind, c.streams, c.gone = 1, 1<<31-1, nil, make(map[uint32]bool)
	c.encoded.Reset()
	c.enc, c.dec = hpack.NewEncoder(&c.encoded), hpack.NewDecoder(4096, nil)
	c.block, c.blockOf = nil, 0
	c.window, c.initial, c.most = 65535, 65535, 100
	c.room, c.roomEach, c.smaller, c.unsettled, c.returns, c.useless = 65535, 65535, -1, 1, 0, 0
	c.pings, c.last = nil, 1<<31-1
	c.out = append(c.out, http2.ClientPreface...)
	var settings []byte
	if c.d.IntN(2) == 0 {
		c.roomEach = [...]int64{0, 1 + c.d.Int64N(100), 1 + c.d.Int64N(100_000), 1 << 20}[c.d.IntN(4)]
		settings = setting(settings, http2.SettingInitialWindowSize, c.roomEach)
	}
	c.frame(http2.FrameSettings, 0, 0, settings)
	return true
}

// refused503 is the excuse of a connection that there was no place for, which is told in HTTP/1.
const refused503 = "refused by a 503"

// enough is how many frames that may do nothing a client sends before it opens its windows by more: the server's budget
// is 10,000 (docs/http2.md).
const enough = 4000

func setting(b []byte, id http2.SettingID, v int64) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, uint16(id)), uint32(v))
}

// frame appends a frame to what is to be sent.
func (c *h2Client) frame(t http2.FrameType, flags http2.Flags, stream uint32, payload []byte) {
	n := len(payload)
	c.out = append(c.out, byte(n>>16), byte(n>>8), byte(n), byte(t), byte(flags))
	c.out = binary.BigEndian.AppendUint32(c.out, stream)
	c.out = append(c.out, payload...)
}

func (c *h2Client) frame32(t http2.FrameType, stream, v uint32) {
	c.frame(t, 0, stream, binary.BigEndian.AppendUint32(nil, v))
}

// misbehave does what clients may do at any time.
func (c *h2Client) misbehave() bool {
	if c.useless++; c.useless > 2*enough {
		return false
	}
	switch c.d.IntN(8) {
	case 0:
		if c.calm {
			return false
		}
		c.leave()
		c.drop()
	case 1:
		if c.calm || c.half || len(c.out) > 0 {
			return false
		}
		c.note("half-closed", 0, 0)
		c.excused, c.half, c.closing = "half-closed", true, true
		c.s.CloseWrite()
	case 2, 3:
		if len(c.streams) == 0 {
			return false
		}
		st := c.streams[c.d.IntN(len(c.streams))]
		c.note("resets stream", int(st.number), 0)
		c.frame32(http2.FrameRSTStream, st.number, uint32(http2.ErrCodeCancel))
		c.gone[st.number] = true
		c.forget(st, !st.ended)
	case 4:
		v := c.d.Uint64()
		c.pings = append(c.pings, v)
		c.frame(http2.FramePing, 0, 0, binary.BigEndian.AppendUint64(nil, v))
	case 5:
		c.resettle()
	case 6:
		c.frame(http2.FrameType(0xf0), 0xff, uint32(c.d.IntN(10)), []byte("unknown")) // RFC 9113 section 5.5
	case 7:
		if c.closing || !c.d.OneIn(4) {
			return false
		}
		c.note("says goodbye", 0, 0)
		c.frame(http2.FrameGoAway, 0, 0, make([]byte, 8))
		c.closing = true
	}
	return true
}

// resettle changes the window of all streams.
func (c *h2Client) resettle() {
	if c.unsettled > 0 {
		return
	}
	v := c.d.Int64N(100_000)
	c.frame(http2.FrameSettings, 0, 0, setting(nil, http2.SettingInitialWindowSize, v))
	c.unsettled++
	if v < c.roomEach {
		c.smaller = v // until then the server may use what it has
		return
	}
	c.resize(v)
}

func (c *h2Client) resize(v int64) {
	for _, st := range c.streams {
		st.room += v - c.roomEach
	}
	c.roomEach = v
}

// forget ends a stream; unanswered if its response will not come.
func (c *h2Client) forget(st *stream, unanswered bool) {
	for i, o := range c.streams {
		if o == st {
			c.streams = append(c.streams[:i], c.streams[i+1:]...)
			break
		}
	}
	if unanswered {
		c.left--
	}
}

func (c *h2Client) drop() {
	for _, st := range c.streams {
		if !st.ended {
			c.left--
		}
	}
	c.s, c.streams = nil, nil
}

// unanswered is how many requests have no response.
func (c *h2Client) unanswered() (n int) {
	for _, st := range c.streams {
		if !st.ended {
			n++
		}
	}
	return n
}

// ask makes requests.
func (c *h2Client) ask() bool {
	if c.closing || c.half || len(c.out) > 64<<10 || len(c.streams) >= min(c.most, 16) || c.left <= c.unanswered() {
		if (c.left <= 0 || c.closing) && len(c.streams) == 0 && len(c.out) == 0 && !c.half {
			c.note("done", 0, 0)
			c.half, c.closing = true, true
			c.s.CloseWrite()
			return true
		}
		return false
	}
	if len(c.streams) > 0 && c.d.OneIn(4) {
		return false
	}
	for range min(1+c.d.IntN(8), c.left-c.unanswered(), min(c.most, 16)-len(c.streams)) {
		c.request()
	}
	return true
}

func (c *h2Client) request() {
	c.next++
	r := c.draw(uint64(c.no)<<32 | c.next)
	st := &stream{asked: r.asked, number: c.number, content: r.content, window: c.initial, room: c.roomEach}
	c.number += 2
	st.want = body(r.id, r.size)
	if r.method == "HEAD" {
		st.want = nil
	}
	if r.method == "POST" {
		st.trailer = c.d.OneIn(8)
	} else {
		st.sent = true
	}
	scheme := "http"
	if c.v.setup.secure {
		scheme = "https"
	}
	fields := []string{":method", r.method, ":scheme", scheme, ":authority", "sim", ":path", r.path}
	if st.trailer {
		fields = append(fields, "trailer", "X-Trailer")
	}
	if r.method == "POST" && c.d.IntN(2) == 0 {
		fields = append(fields, "content-length", strconv.Itoa(len(r.content)))
	}
	if c.d.OneIn(8) {
		fields = append(fields, "priority", "u="+strconv.Itoa(c.d.IntN(8))+[...]string{"", ", i"}[c.d.IntN(2)])
	}
	for range c.d.IntN(4) / 3 * 20 { // that fill the table, and need several frames
		fields = append(fields, "x-"+strconv.Itoa(c.d.IntN(100)), strconv.Itoa(c.d.IntN(1<<30)))
	}
	c.headers(st.number, st.sent, fields)
	c.streams = append(c.streams, st)
}

// headers appends a header block, in one frame or several.
func (c *h2Client) headers(number uint32, end bool, fields []string) {
	c.encoded.Reset()
	for i := 0; i < len(fields); i += 2 {
		c.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	b := c.encoded.Bytes()
	flags, t := http2.Flags(0), http2.FrameHeaders
	if end {
		flags = http2.FlagHeadersEndStream
	}
	pieces := 1
	if c.d.OneIn(16) {
		pieces += c.d.IntN(16) // and more are too many for the server
	}
	for ; pieces > 1 && len(b) > 1; pieces-- {
		n := 1 + c.d.IntN(len(b)-1)
		c.frame(t, flags, number, b[:n])
		b, t, flags = b[n:], http2.FrameContinuation, 0
	}
	if t == http2.FrameHeaders && c.d.OneIn(16) {
		b = padded(b, c.d.IntN(20))
		flags |= http2.FlagHeadersPadded
	}
	c.frame(t, flags|http2.FlagHeadersEndHeaders, number, b)
}

func padded(b []byte, n int) []byte {
	return append(append([]byte{byte(n)}, b...), make([]byte, n)...)
}

// upload sends some of a request's content.
func (c *h2Client) upload() bool {
	if c.half || len(c.out) > 64<<10 || len(c.streams) == 0 {
		return false
	}
	first := c.d.IntN(len(c.streams))
	for i := range c.streams {
		st := c.streams[(first+i)%len(c.streams)]
		if st.sent {
			continue
		}
		n := int(min(int64(len(st.content)), st.window, c.window, 16<<10))
		if n <= 0 && len(st.content) > 0 {
			continue
		}
		n = c.d.Part(max(n, 0))
		c.data(st, min(n, len(st.content)))
		return true
	}
	return false
}

func (c *h2Client) data(st *stream, n int) {
	payload, flags := st.content[:n], http2.Flags(0)
	if left := min(st.window, c.window, 16<<10) - int64(n); left > 20 && c.d.OneIn(8) {
		payload = padded(payload, c.d.IntN(int(min(left, 100))-1))
		flags = http2.FlagDataPadded
	}
	st.content = st.content[n:]
	if len(st.content) == 0 && !st.trailer && c.d.IntN(4) != 0 {
		st.sent = true
		flags |= http2.FlagDataEndStream
	}
	if len(payload) > 0 || st.sent || !st.trailer {
		if len(payload) == 0 && !st.sent { // an empty one, and the end
			st.sent = true
			flags |= http2.FlagDataEndStream
		}
		c.frame(http2.FrameData, flags, st.number, payload)
		c.window -= int64(len(payload))
		st.window -= int64(len(payload))
	}
	if len(st.content) == 0 && st.trailer {
		st.sent = true
		c.headers(st.number, true, []string{"x-trailer", "1"})
	}
	if st.sent && st.ended {
		c.forget(st, false)
	}
}

// give returns windows, in odd sizes.
func (c *h2Client) give() (did bool) {
	if c.half || len(c.out) > 64<<10 {
		return false
	}
	if c.returns > 0 && c.d.IntN(2) == 0 {
		n := c.d.Part(c.returns)
		c.frame32(http2.FrameWindowUpdate, 0, uint32(n))
		c.useless++
		c.returns -= n
		c.room += int64(n)
		did = true
	}
	for _, st := range c.streams {
		if st.ended || c.d.IntN(2) == 0 {
			continue
		}
		n := c.d.Part(st.returns)
		if st.room <= 0 && st.returns == 0 && (len(st.want) > 0 || st.refused) { // a window that began with less than nothing
			n = int(-st.room) + 1 + c.d.IntN(5000)
			st.returns = n
		}
		if n > 0 && c.useless > enough {
			n += 64 << 10
			st.returns = n
		}
		if n == 0 {
			continue
		}
		c.frame32(http2.FrameWindowUpdate, st.number, uint32(n))
		c.useless++
		st.returns -= n
		st.room += int64(n)
		did = true
	}
	return did
}

func (c *h2Client) receive() bool {
	did, err := c.pull()
	if !did {
		return false
	}
	if c.v.mayRefuse() && bytes.HasPrefix(c.in, []byte("HTTP/1.1 ")) { // before it has read anything
		c.excused, c.closing = refused503, true
	}
	if c.excused == refused503 {
		c.in = nil
	}
	for len(c.in) >= 9 && !c.over {
		n := int(c.in[0])<<16 | int(c.in[1])<<8 | int(c.in[2])
		if n > 16<<10 {
			c.fail("a frame of %d bytes (RFC 9113 section 4.2)", n)
			return true
		}
		if len(c.in) < 9+n {
			break
		}
		number := binary.BigEndian.Uint32(c.in[5:]) & (1<<31 - 1)
		if err := c.frameOf(http2.FrameType(c.in[3]), http2.Flags(c.in[4]), number, c.in[9:9+n]); err != nil {
			c.fail("stream %d: %v", number, err)
			return true
		}
		c.in = c.in[9+n:]
	}
	if len(c.in) == 0 {
		c.in = nil
	}
	if err != nil && !c.over {
		c.ended(err)
	}
	return true
}

// ended judges the end of the connection.
func (c *h2Client) ended(err error) {
	n := c.unanswered()
	c.noteEnd("ended with unanswered requests and bytes", err, n, len(c.in))
	switch {
	case n == 0 && len(c.in) == 0:
	case c.excused != "":
	case c.v.inside.Ending() || !c.calm && (c.v.cutsAllowed() || err != io.EOF):
	default:
		c.fail("%d requests have no response: %s", n, c.state())
		return
	}
	c.s.Close()
	c.drop()
}

func (c *h2Client) find(number uint32) *stream {
	for _, st := range c.streams {
		if st.number == number {
			return st
		}
	}
	return nil
}

func (c *h2Client) frameOf(t http2.FrameType, flags http2.Flags, number uint32, p []byte) error {
	if c.blockOf != 0 && (t != http2.FrameContinuation || number != c.blockOf) {
		return fmt.Errorf("%v within a header block", t)
	}
	switch t {
	case http2.FrameSettings:
		return c.settings(flags, p)
	case http2.FramePing:
		return c.ping(flags, p)
	case http2.FrameGoAway:
		code := http2.ErrCode(binary.BigEndian.Uint32(p[4:]))
		last := binary.BigEndian.Uint32(p)
		c.note("GOAWAY", int(last), int(code))
		if code != http2.ErrCodeNo || last > c.last {
			return fmt.Errorf("GOAWAY %v, last %d after %d: %q", code, last, c.last, p[8:])
		}
		c.last, c.closing = last, true
		for i := len(c.streams) - 1; i >= 0; i-- {
			if st := c.streams[i]; st.number > last { // it has not been begun (RFC 9113 section 6.8)
				c.gone[st.number] = true
				c.forget(st, !st.ended)
			}
		}
	case http2.FrameWindowUpdate:
		n := int64(binary.BigEndian.Uint32(p))
		window := &c.window
		if number != 0 {
			st := c.find(number)
			if st == nil {
				return c.stale(t, number)
			}
			window = &st.window
		}
		if *window += n; n == 0 || *window > 1<<31-1 {
			return fmt.Errorf("a window of %d by %d", *window, n)
		}
	case http2.FrameRSTStream:
		return c.wasReset(number, http2.ErrCode(binary.BigEndian.Uint32(p)))
	case http2.FrameHeaders, http2.FrameContinuation:
		if flags&(http2.FlagHeadersPadded|http2.FlagHeadersPriority) != 0 && t == http2.FrameHeaders {
			return fmt.Errorf("HEADERS with flags %x", flags)
		}
		if t == http2.FrameHeaders {
			c.blockOf, c.blockAt = number, flags
		} else if c.blockOf == 0 {
			return fmt.Errorf("CONTINUATION of nothing")
		}
		c.block = append(c.block, p...)
		if flags&http2.FlagHeadersEndHeaders == 0 {
			return nil
		}
		fields, err := c.dec.DecodeFull(c.block)
		c.block, c.blockOf = nil, 0
		if err != nil {
			return err
		}
		return c.head(number, fields, c.blockAt&http2.FlagHeadersEndStream != 0)
	case http2.FrameData:
		return c.received(number, p, flags)
	default:
		return fmt.Errorf("%v", t)
	}
	return nil
}

// stale accepts a frame for a stream that is no more, if there has been one.
func (c *h2Client) stale(t http2.FrameType, number uint32) error {
	if number%2 == 1 && number < c.number && (c.gone[number] || t == http2.FrameWindowUpdate) {
		return nil
	}
	return fmt.Errorf("%v for a stream that is closed, or none", t)
}

func (c *h2Client) settings(flags http2.Flags, p []byte) error {
	if flags&http2.FlagSettingsAck != 0 {
		if c.unsettled--; c.unsettled < 0 {
			return fmt.Errorf("SETTINGS are acknowledged twice")
		}
		if c.smaller >= 0 {
			c.resize(c.smaller)
			c.smaller = -1
		}
		return nil
	}
	for ; len(p) >= 6; p = p[6:] {
		v := binary.BigEndian.Uint32(p[2:])
		switch http2.SettingID(binary.BigEndian.Uint16(p)) {
		case http2.SettingInitialWindowSize:
			for _, st := range c.streams {
				st.window += int64(v) - c.initial
			}
			c.initial = int64(v)
		case http2.SettingMaxConcurrentStreams:
			c.most, c.blind = int(v), c.number
		}
	}
	if !c.half {
		c.frame(http2.FrameSettings, http2.FlagSettingsAck, 0, nil)
	}
	return nil
}

func (c *h2Client) ping(flags http2.Flags, p []byte) error {
	if flags&http2.FlagPingAck == 0 {
		if !c.half {
			c.frame(http2.FramePing, http2.FlagPingAck, 0, p)
		}
		return nil
	}
	if v := binary.BigEndian.Uint64(p); len(c.pings) == 0 || c.pings[0] != v {
		return fmt.Errorf("an answer to another PING")
	}
	c.pings = c.pings[1:]
	return nil
}

// wasReset accepts a reset of the server's where there is a reason.
func (c *h2Client) wasReset(number uint32, code http2.ErrCode) error {
	st := c.find(number)
	if st == nil {
		// It crosses the end of the request, or is for what the client sent before it knew the window.
		if number%2 == 1 && (code == http2.ErrCodeNo && number < c.number || code == http2.ErrCodeFlowControl && number < min(c.number, c.blind)) {
			return nil
		}
		if err := c.stale(http2.FrameRSTStream, number); err != nil {
			return fmt.Errorf("%w: %v", err, code)
		}
		return nil
	}
	c.note("reset", int(number), int(code))
	switch {
	case st.ended && code == http2.ErrCodeNo: // what is left of the request is not wanted (section 8.1)
	case st.cut && code == http2.ErrCodeInternal:
	case code == http2.ErrCodeRefusedStream && c.mayRefuse(st):
		c.pause(100 * time.Millisecond) // again and again would be too many
	case code == http2.ErrCodeFlowControl && st.number < c.blind: // section 6.9.3: it sent before it knew the window
	case c.excused != "":
	case !c.calm && (code == http2.ErrCodeCancel || code == http2.ErrCodeInternal):
		// The clock has jumped: the client was too slow for what the owner sends, or a handler.
	default:
		return fmt.Errorf("reset: %v, %+v", code, st.asked)
	}
	c.gone[number] = true
	c.forget(st, !st.ended)
	return nil
}

// mayRefuse reports whether the server may have had too many streams: the client did not know how many it permits, or
// handlers of those that it has reset still run.
func (c *h2Client) mayRefuse(st *stream) bool {
	return st.number < c.blind || len(c.gone) > 0 || c.v.mayRefuse()
}

func (c *h2Client) head(number uint32, fields []hpack.HeaderField, end bool) error {
	st := c.find(number)
	if st == nil {
		return c.stale(http2.FrameHeaders, number)
	}
	if st.ended || st.headed {
		return fmt.Errorf("HEADERS after the head")
	}
	st.headed = true
	get := func(name string) string {
		for _, f := range fields {
			if f.Name == name {
				return f.Value
			}
		}
		return ""
	}
	if status := get(":status"); status != "200" {
		if status != "503" || !c.v.mayRefuse() {
			return fmt.Errorf("status %s for %+v", status, st.asked)
		}
		st.refused, st.want = true, nil // and whatever comes
	} else {
		if id := get("x-id"); id != strconv.FormatUint(st.id, 10) {
			return fmt.Errorf("response of %s to request %d", id, st.id)
		}
		if st.read >= 0 && get("x-read") != strconv.Itoa(st.read) {
			return fmt.Errorf("the handler has read %s of %d bytes", get("x-read"), st.read)
		}
		if n := get("content-length"); n != "" && n != strconv.Itoa(st.size) && !st.cut {
			return fmt.Errorf("length %s instead of %d", n, st.size)
		}
	}
	if end {
		return c.whole(st)
	}
	return nil
}

func (c *h2Client) received(number uint32, p []byte, flags http2.Flags) error {
	n := len(p)
	if c.room -= int64(n); c.room < 0 {
		return fmt.Errorf("DATA beyond the connection's window by %d", -c.room)
	}
	c.returns += n
	st := c.find(number)
	if st == nil {
		return c.stale(http2.FrameData, number)
	}
	if st.room -= int64(n); st.room < 0 && n > 0 {
		return fmt.Errorf("DATA beyond the window by %d", -st.room)
	}
	st.returns += n
	if !st.headed || st.ended || flags&http2.FlagDataPadded != 0 {
		return fmt.Errorf("DATA out of place")
	}
	if !st.refused {
		if n > len(st.want) || !bytes.Equal(p, st.want[:n]) {
			return fmt.Errorf("the body is another")
		}
		st.want = st.want[n:]
	}
	if flags&http2.FlagDataEndStream != 0 {
		return c.whole(st)
	}
	return nil
}

// whole ends a response.
func (c *h2Client) whole(st *stream) error {
	if len(st.want) > 0 {
		return fmt.Errorf("%d bytes are missing", len(st.want))
	}
	if st.cut && !st.refused {
		return fmt.Errorf("a response that was aborted is whole")
	}
	c.note(st.kind, int(st.id&0xffffffff), st.size)
	st.ended = true
	if c.left--; !st.refused {
		c.done++
	}
	if st.sent {
		c.forget(st, false)
	}
	return nil
}

// speakH2 sets the server's protocols and limits.
func speakH2(v *served) {
	v.Protocols = new(http.Protocols)
	v.Protocols.SetHTTP1(true)
	v.Protocols.SetHTTP2(true)
	v.Protocols.SetUnencryptedHTTP2(true)
	if v.dice.IntN(2) == 0 {
		v.HTTP2 = &http.HTTP2Config{
			MaxConcurrentStreams:          1 + v.dice.IntN(20),
			MaxReceiveBufferPerStream:     1 + v.dice.IntN(100_000),
			MaxReceiveBufferPerConnection: 1<<16 + v.dice.IntN(1<<18),
		}
	}
}
