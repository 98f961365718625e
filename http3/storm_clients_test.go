package http3_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	codec "github.com/chert-http/chert/internal/http3"
	"github.com/chert-http/chert/internal/pack"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/internal/wsframe"
)

// This file is the clients of TestStorm.

// storm has clients come whose seed decides what they do, and returns when they have gone.
func (r *running) storm(seed int64, limited bool) {
	var all sync.WaitGroup
	defer all.Wait()
	for i := range int64(10) {
		rnd := rand.New(rand.NewSource(seed<<8 + i))
		all.Go(func() {
			// quic-go's clients do not share tickets: connections write to them.
			cache, tokens := tls.NewLRUClientSessionCache(10), quic.NewLRUTokenStore(10, 10)
			for range 3 {
				v := r.visitor(rnd)
				v.tls.ClientSessionCache, v.quic.TokenStore, v.limited = cache, tokens, limited
				v.visit(i%5 == 4)
			}
		})
	}
	all.Go(func() { r.lawful(seed, limited) })
}

// visitor is one connection of a client. Its rnd is that of its own goroutine.
type visitor struct {
	r       *running
	rnd     *rand.Rand
	path    *badPath
	ways    []*quic.Transport
	tls     *tls.Config
	quic    *quic.Config
	conn    *quic.Conn
	limited bool // requests may be answered 503
	all     sync.WaitGroup
}

func (r *running) visitor(rnd *rand.Rand) *visitor {
	v := &visitor{r: r, rnd: rnd, path: newBadPath(r.t, r.addr, rnd.Int63(), []int{0, 2, 5}[rnd.Intn(3)]), tls: clientTLS()}
	v.tls.ServerName = "example.com"
	// A client that falls silent is noticed soon.
	v.quic = &quic.Config{MaxIdleTimeout: 2 * time.Second, HandshakeIdleTimeout: servertest.Patience / 2}
	return v
}

// way returns another socket of the client.
func (v *visitor) way() *quic.Transport {
	u, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		panic(err)
	}
	tr := &quic.Transport{Conn: u}
	v.ways = append(v.ways, tr)
	return tr
}

// leave closes what the client has.
func (v *visitor) leave() {
	for _, w := range v.ways {
		w.Close()
		w.Conn.Close()
	}
	v.path.close()
	v.all.Wait()
}

// visit is the life of the connection. vandal: the client breaks the protocol.
func (v *visitor) visit(vandal bool) {
	ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
	defer v.leave()
	defer cancel()
	if !v.dial(ctx) {
		return
	}
	v.uni(codec.StreamControl, settings())
	v.all.Go(v.listen)
	for range 20 + v.rnd.Intn(60) {
		if vandal && v.rnd.Intn(20) == 0 {
			v.breaks()
		} else {
			v.act(ctx)
		}
		if v.rnd.Intn(10) == 0 {
			time.Sleep(time.Duration(v.rnd.Intn(5000)) * time.Microsecond) // a client's own pace
		}
		if v.conn.Context().Err() != nil {
			break
		}
	}
	switch v.rnd.Intn(4) {
	case 0: // it leaves in the middle
	case 1:
		v.path.block() // silent: not even its end is told
	default:
		if !vandal {
			time.AfterFunc(500*time.Millisecond, func() { v.conn.CloseWithError(0x100, "") }) // what waits for nothing ends
			v.all.Wait()
		}
	}
	v.conn.CloseWithError(0x100, "")
}

// dial connects, and makes some early requests if it has a ticket for them. Only before the server's first packet, as
// the streams of quic-go's client are not to be opened while that is processed.
func (v *visitor) dial(ctx context.Context) (ok bool) {
	v.path.mute(true)
	unmute := time.AfterFunc(100*time.Millisecond, func() { v.path.mute(false) })
	c, err := v.way().DialEarly(ctx, v.path.front.LocalAddr(), v.tls, v.quic)
	if v.conn = c; err != nil {
		if idle := (*quic.IdleTimeoutError)(nil); !errors.As(err, &idle) {
			v.r.t.Errorf("dial: %v", err)
		}
		return false
	}
	if unmute.Stop() {
		for range v.rnd.Intn(8) {
			v.act(ctx)
		}
		// What this goroutine writes orders what it has opened before what the connection's own goroutine does next.
		if str := v.open(ctx); str != nil {
			str.Write(headers(get...))
			str.Close()
		}
		v.path.mute(false)
	}
	select {
	case <-c.HandshakeComplete():
		if c.ConnectionState().Used0RTT {
			return true
		}
		v.conn, err = c.NextConnection(ctx) // what was early has failed, if there was any
		return err == nil
	case <-c.Context().Done():
		return false
	}
}

// listen takes what the server opens.
func (v *visitor) listen() {
	for {
		str, err := v.conn.AcceptUniStream(v.conn.Context())
		if err != nil {
			return
		}
		io.Copy(io.Discard, str)
	}
}

func (v *visitor) uni(t codec.StreamType, p []byte) {
	if str, err := v.conn.OpenUniStream(); err == nil {
		str.Write(append(codec.AppendVarint(nil, uint64(t)), p...))
	}
}

// whole are the paths whose answers are whole if they end, and cut those whose never do.
var (
	whole = []string{"/", "/pieces", "/length", "/trailers", "/hints", "/takes", "/deadline", "/direct", "/file", "/slow", "/echo"}
	cut   = []string{"/panic", "/exit", "/direct/panic", "/direct/exit"}
)

// act does one thing, or begins it.
func (v *visitor) act(ctx context.Context) {
	rnd, what := rand.New(rand.NewSource(v.rnd.Int63())), v.rnd.Intn(16)
	if what == 15 {
		v.wander(ctx, rnd)
		return
	}
	str := v.open(ctx)
	if str == nil {
		return
	}
	n := v.rnd.Intn([]int{10, 1000, 20_000, patternSize}[v.rnd.Intn(4)])
	switch what {
	case 0, 1, 2, 3, 4, 5:
		v.all.Go(func() { v.ask(str, rnd, whole[rnd.Intn(len(whole))], n, -1) })
	case 6:
		v.all.Go(func() { v.ask(str, rnd, cut[rnd.Intn(len(cut))], n, -1) })
	case 7, 8: // cancelled when some has come
		v.all.Go(func() { v.ask(str, rnd, whole[rnd.Intn(len(whole))], n, rnd.Intn(n+1)) })
	case 9: // cancelled when nothing has, and perhaps in the middle of the request
		v.all.Go(func() { v.half(str, rnd, n) })
	case 10:
		v.all.Go(func() { v.ask(str, rnd, "/context", n, 0) })
	case 11: // not read: it keeps its window
		str.Write(headers(path(get, fmt.Sprint("/?n=", n/8))...))
		str.Close()
	case 12:
		v.all.Go(func() { v.ask(str, rnd, []string{"/events", "/poll"}[rnd.Intn(2)], n, 1+rnd.Intn(3000)) })
	default:
		v.all.Go(func() { v.socket(str, rnd, n) })
	}
}

// wander changes the client's address, behind a NAT or as it goes to another network, or opens a stream of no use.
func (v *visitor) wander(ctx context.Context, rnd *rand.Rand) {
	switch rnd.Intn(3) {
	case 0:
		v.uni(codec.StreamType(0x21+0x1f*rnd.Intn(9)), []byte("what nobody knows"))
	case 1:
		v.path.rebind()
	default:
		select {
		case <-v.conn.HandshakeComplete():
		default:
			return
		}
		w := v.way()
		v.all.Go(func() {
			p, err := v.conn.AddPath(w)
			if err != nil {
				return
			}
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if p.Probe(ctx) == nil && v.conn.Context().Err() == nil {
				p.Switch()
			}
		})
	}
}

func (v *visitor) open(ctx context.Context) *quic.Stream {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	str, err := v.conn.OpenStreamSync(ctx)
	if err != nil {
		return nil // the connection has ended, or early data was rejected
	}
	str.SetDeadline(time.Now().Add(servertest.Patience))
	return str
}

// ask makes a request and reads its answer, which must be right if it is whole. After most bytes, if that is not
// negative, the client wants no more.
func (v *visitor) ask(str *quic.Stream, rnd *rand.Rand, to string, n, most int) {
	body := ""
	fields := path(get, fmt.Sprintf("%s?n=%d", to, n))
	if to == "/echo" || rnd.Intn(6) == 0 {
		body = patterned(n)
		fields = path(post, fields[3][len(":path: "):])
		if rnd.Intn(2) == 0 {
			fields = with(fields, fmt.Sprintf("content-length: %d", n))
		}
	}
	if rnd.Intn(4) == 0 {
		fields = with(fields, fmt.Sprintf("priority: u=%d, i=?%d", rnd.Intn(8), rnd.Intn(2)))
	}
	sent := make(chan bool)
	seed := rnd.Int63()
	go func() {
		defer close(sent)
		send(str, rand.New(rand.NewSource(seed)), headers(fields...), body)
	}()
	a := receive(str, most)
	if most >= 0 {
		cancel(str)
	}
	<-sent
	want, isWhole := patterned(n), slices.Contains(whole, to)
	switch {
	case most >= 0 || a.err != nil: // not all has come
		if isWhole && a.status == "200" && !strings.HasPrefix(want, a.body) {
			v.r.t.Errorf("%s?n=%d: %d bytes are wrong", to, n, len(a.body))
		}
	case v.limited && a.status == "503":
	case strings.HasPrefix(to, "/direct/") && a.status == "404": // what has a body, or may have one, has no direct handler
	case !isWhole:
		v.r.t.Errorf("%s?n=%d ends: %s, %d bytes", to, n, a.status, len(a.body))
	case a.status != "200" || a.body != want:
		v.r.t.Errorf("%s?n=%d: %s, %d bytes", to, n, a.status, len(a.body))
	}
}

// send sends a request in pieces, with frames in between that mean nothing.
func send(str *quic.Stream, rnd *rand.Rand, head []byte, body string) {
	p := head
	for rest := body; len(rest) > 0; {
		k := 1 + rnd.Intn(min(len(rest), 30_000))
		p = append(p, data(rest[:k])...)
		if rnd.Intn(4) == 0 {
			p = append(p, frame(0x21, make([]byte, rnd.Intn(100)))...)
		}
		rest = rest[k:]
	}
	for len(p) > 0 {
		k := min(len(p), 1+rnd.Intn(10_000))
		if _, err := str.Write(p[:k]); err != nil {
			return
		}
		p = p[k:]
	}
	str.Close()
}

// half sends a part of a request and leaves it.
func (v *visitor) half(str *quic.Stream, rnd *rand.Rand, n int) {
	p := join(headers(path(post, fmt.Sprintf("%s?n=%d", whole[rnd.Intn(len(whole))], n))...), data(patterned(n)))
	str.Write(p[:rnd.Intn(min(len(p), 200))])
	switch rnd.Intn(4) {
	case 0:
		str.CancelWrite(quic.StreamErrorCode(codec.RequestCancelled)) // and reads on
		receive(str, -1)
	case 1:
		str.CancelRead(quic.StreamErrorCode(codec.RequestCancelled)) // and sends on
		str.Write(p)
		str.CancelWrite(0)
	default:
		cancel(str)
	}
}

// received is what has come of an answer.
type received struct {
	status, body string
	err          error // nil at the end
}

// receive reads an answer, but for what comes after most bytes of its body, if that is not negative.
func receive(str *quic.Stream, most int) (a received) {
	var r codec.Reader
	var head, body []byte
	var b [4 << 10]byte
	defer func() { a.body = string(body) }()
	for {
		n, err := str.Read(b[:])
		for p := b[:n]; len(p) > 0; {
			part, k := r.Next(p)
			if part == codec.PartPayload {
				switch r.Header().Type {
				case codec.FrameData:
					body = append(body, p[:k]...)
				case codec.FrameHeaders:
					head = append(head, p[:k]...)
				}
			}
			p = p[k:]
			if r.Header().Type == codec.FrameHeaders && r.Left() == 0 && len(head) > 0 {
				if s := statusOf(head); s != "" && s[0] != '1' {
					a.status = s
				}
				head = head[:0]
			}
		}
		if err == io.EOF && r.Within() {
			err = io.ErrUnexpectedEOF
		}
		if err == io.EOF {
			return a
		}
		if a.err = err; err != nil || most >= 0 && len(body) >= most && a.status != "" {
			return a
		}
	}
}

// statusOf is the status in a section, "" in trailers.
func statusOf(p []byte) string {
	var f pack.Fields
	if codec.Decode(p, &f, pack.Limits{Bytes: 1 << 20, Fields: 1000}) == nil && len(f.List) > 0 && f.List[0].ID == pack.IDStatus {
		return string(f.Get(f.List[0].Value))
	}
	return ""
}

// socket opens a WebSocket, whose echoes must be right as far as they come, and leaves it in some way.
func (v *visitor) socket(str *quic.Stream, rnd *rand.Rand, n int) {
	fields := append([]string(nil), connect...)
	fields[4] = fmt.Sprintf(":path: /ws?n=%d", n)
	str.Write(headers(fields...))
	var want []byte
	for range rnd.Intn(10) {
		m := patterned(rnd.Intn(3000))
		if _, err := str.Write(data(message(wsframe.Binary, m))); err != nil {
			break
		}
		if len(m)%16 < 2 { // it is the last one
			break
		}
		want = wsframe.AppendFrame(want, wsframe.Binary, false, []byte(m))
	}
	most := -1
	switch rnd.Intn(4) {
	case 0:
		str.Write(data(message(wsframe.Close, "\x03\xe8")))
		str.Close()
	case 1:
		str.Close()
	case 2:
		most = rnd.Intn(len(want) + 1)
	default:
		str.CancelWrite(quic.StreamErrorCode(codec.RequestCancelled))
	}
	a := receive(str, most)
	cancel(str)
	same := 0
	for same < min(len(a.body), len(want)) && a.body[same] == want[same] {
		same++
	}
	// What differs is the end, a Close frame, but for those to which the server sends by itself.
	if n%7 != 0 && a.status == "200" && same < min(len(a.body), len(want)) && a.body[same] != 0x88 {
		v.r.t.Errorf("a WebSocket's echo is wrong after %d of %d bytes", same, len(want))
	}
}

// breaks does what is not allowed.
func (v *visitor) breaks() {
	junk := make([]byte, v.rnd.Intn(200))
	v.rnd.Read(junk)
	types := []codec.FrameType{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0xd, 0x21, 0xf0700, 0xf0701}
	typ := types[v.rnd.Intn(len(types))]
	switch v.rnd.Intn(6) {
	case 0:
		v.uni(codec.StreamType(v.rnd.Intn(5)), junk)
		return
	case 1:
		v.uni(codec.StreamControl, frame(typ, junk))
		return
	}
	str, err := v.conn.OpenStream()
	if err != nil {
		return
	}
	switch v.rnd.Intn(4) {
	case 0:
		str.Write(junk)
	case 1:
		str.Write(frame(typ, junk))
	case 2:
		str.Write(join(headers(path(post, "/echo")...), frame(typ, junk), junk))
	default:
		p := headers(path(get, "/")...)
		p[v.rnd.Intn(len(p))] ^= 1 << v.rnd.Intn(8)
		str.Write(p)
	}
	if v.rnd.Intn(2) == 0 {
		str.Close()
	}
}

// lawful is a client whose every request is answered, whatever its path does.
func (r *running) lawful(seed int64, limited bool) {
	rnd := rand.New(rand.NewSource(seed))
	v := r.visitor(rnd)
	defer v.leave()
	w := v.way()
	tr := &http3.Transport{
		TLSClientConfig: v.tls, DisableCompression: true,
		// The server learns of another address by what a client sends, and one that waits for an answer sends nothing else.
		QUICConfig: &quic.Config{HandshakeIdleTimeout: servertest.Patience / 2, MaxIdleTimeout: 15 * time.Second, KeepAlivePeriod: time.Second},
		Dial: func(ctx context.Context, _ string, of *tls.Config, o *quic.Config) (*quic.Conn, error) {
			for {
				c, err := w.Dial(ctx, v.path.front.LocalAddr(), of, o)
				if err == nil || ctx.Err() != nil {
					return c, err
				}
			}
		},
	}
	defer func() {
		tr.Close()
		time.Sleep(50 * time.Millisecond) // its end is on its way; otherwise it is one that has fallen silent
	}()
	c := &http.Client{Transport: tr, Timeout: servertest.Patience}
	var all sync.WaitGroup
	defer all.Wait()
	for k := range 30 {
		n, to := rnd.Intn(patternSize), whole[rnd.Intn(len(whole))]
		if to == "/deadline" {
			to = "/echo"
		}
		if k%3 == 0 {
			all.Go(func() { r.asks(c, to, n, limited) })
		} else {
			r.asks(c, to, n, limited)
		}
		if rnd.Intn(5) == 0 {
			v.path.rebind()
		}
	}
}

// asks makes a request that is to be answered.
func (r *running) asks(c *http.Client, to string, n int, limited bool) {
	method, body := "GET", ""
	if to == "/echo" {
		method, body = "POST", patterned(n)
	}
	req, err := http.NewRequest(method, fmt.Sprintf("https://example.com%s?n=%d", to, n), strings.NewReader(body))
	if err != nil {
		r.t.Error(err)
		return
	}
	res, err := c.Do(req)
	if err != nil {
		r.t.Errorf("%s?n=%d: %v", to, n, err)
		return
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if limited && res.StatusCode == 503 {
		return
	}
	if err != nil || res.StatusCode != 200 || string(got) != patterned(n) {
		r.t.Errorf("%s?n=%d: %s, %d bytes, %v", to, n, res.Status, len(got), err)
	}
}
