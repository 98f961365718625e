package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/proxy"
)

// framed serves HTTP/2 by frames: serve gets the head of each request.
func framed(serve func(fr *http2.Framer, head *http2.MetaHeadersFrame), settings ...http2.Setting) func(c *conn) {
	return func(c *conn) {
		io.ReadFull(c.r, make([]byte, len(http2.ClientPreface)))
		fr := http2.NewFramer(c, c.r)
		fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		fr.WriteSettings(settings...)
		for {
			f, err := fr.ReadFrame()
			if err != nil {
				return
			}
			switch f := f.(type) {
			case *http2.SettingsFrame:
				if !f.IsAck() {
					fr.WriteSettingsAck()
				}
			case *http2.MetaHeadersFrame:
				serve(fr, f)
			}
		}
	}
}

// respond sends a response without a body.
func respond(fr *http2.Framer, id uint32, fields ...string) {
	fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block(fields), EndHeaders: true, EndStream: true})
}

// TestNotAcceptedHTTP2: a request that a server does not accept, on any connection, is sent to it on two at most,
// and its client is not why the server would be ejected.
func TestNotAcceptedHTTP2(t *testing.T) {
	t.Parallel()
	reset := func(code http2.ErrCode) func(fr *http2.Framer, f *http2.MetaHeadersFrame) {
		return func(fr *http2.Framer, f *http2.MetaHeadersFrame) { fr.WriteRSTStream(f.StreamID, code) }
	}
	none := http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0}
	for _, c := range []struct {
		name     string
		serve    func(fr *http2.Framer, f *http2.MetaHeadersFrame)
		settings []http2.Setting
		most     int64
	}{
		{"PROTOCOL_ERROR", reset(http2.ErrCodeProtocol), nil, 2},
		{"GOAWAY", func(fr *http2.Framer, f *http2.MetaHeadersFrame) { fr.WriteGoAway(0, http2.ErrCodeNo, nil) }, nil, 2},
		{"no streams", reset(http2.ErrCodeRefusedStream), []http2.Setting{none}, 8},
	} {
		for _, method := range []string{"DELETE", "POST"} {
			t.Run(c.name+" "+method, func(t *testing.T) {
				t.Parallel()
				var got atomic.Int64
				o := start(t, framed(func(fr *http2.Framer, f *http2.MetaHeadersFrame) {
					got.Add(1)
					c.serve(fr, f)
				}, c.settings...))
				s := &setup{}
				s.up.Protocol = proxy.ProtocolHTTP2
				client := s.start(t, chert.EngineGoroutines, o.addr()).Dial()
				client.Send(method + " /?q=<b> HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n")
				if res, _ := client.Response(method); res.StatusCode != 502 {
					t.Error(res.Status, s.log)
				}
				if n := got.Load(); n > c.most || n > 1 && method == "POST" {
					t.Errorf("sent %d times", n)
				}
				if st := s.pool.Status()[0].Servers[0]; c.settings == nil && st.Failures > 0 {
					t.Errorf("%+v", st)
				}
			})
		}
	}
}

// TestFewStreamsHTTP2: a server takes fewer streams of a connection than are sent before it has said so.
func TestFewStreamsHTTP2(t *testing.T) {
	t.Parallel()
	l := servertest.ListenTCP(t)
	server := &http.Server{Protocols: new(http.Protocols), HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 10},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { time.Sleep(10 * time.Millisecond) })}
	server.Protocols.SetUnencryptedHTTP2(true)
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	s := &setup{}
	s.up.Protocol = proxy.ProtocolHTTP2
	h := s.handler(t, l.Addr().String())
	var all sync.WaitGroup
	for range 150 {
		all.Go(func() {
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil)); w.Code != http.StatusOK {
				t.Error(w.Code, s.log)
			}
		})
	}
	all.Wait()
}

// TestLeftHTTP2: a server that leaves by GOAWAY gets the request on another connection.
func TestLeftHTTP2(t *testing.T) {
	t.Parallel()
	var got atomic.Int64
	o := start(t, framed(func(fr *http2.Framer, f *http2.MetaHeadersFrame) {
		if got.Add(1) == 1 {
			fr.WriteGoAway(0, http2.ErrCodeNo, nil)
			return
		}
		respond(fr, f.StreamID, ":status: 204")
	}))
	s := &setup{}
	s.up.Protocol = proxy.ProtocolHTTP2
	client := s.start(t, chert.EngineGoroutines, o.addr()).Dial()
	client.Send(get)
	if res, _ := client.Response("GET"); res.StatusCode != 204 {
		t.Error(res.Status, s.log)
	}
}

// TestCheckNotAcceptedHTTP2: a check that is not accepted fails.
func TestCheckNotAcceptedHTTP2(t *testing.T) {
	t.Parallel()
	o := start(t, framed(func(fr *http2.Framer, f *http2.MetaHeadersFrame) { fr.WriteGoAway(0, http2.ErrCodeNo, nil) }))
	s := &setup{}
	s.up.Protocol, s.up.Check = proxy.ProtocolHTTP2, &proxy.Check{Path: "/", Interval: 1, Timeout: time.Minute, Fall: 1}
	s.handler(t, o.addr())
	servertest.Eventually(t, "a check has failed", func() bool { return strings.Contains(s.log.String(), "reset before the response") })
}

// TestRefusedHTTP2: what a server says that it has not processed is sent to another one, with the body if it is held,
// and does not count as its failure.
func TestRefusedHTTP2(t *testing.T) {
	t.Parallel()
	refuse := func(fr *http2.Framer, id uint32) { fr.WriteRSTStream(id, http2.ErrCodeRefusedStream) }
	leave := func(fr *http2.Framer, id uint32) { fr.WriteGoAway(0, http2.ErrCodeNo, nil) }
	malformed := func(fr *http2.Framer, id uint32) { fr.WriteRSTStream(id, http2.ErrCodeProtocol) }
	for _, c := range []struct {
		name   string
		refuse func(fr *http2.Framer, id uint32)
		in     string
		status int
		got    int64 // by the server that does not accept it
	}{
		{"REFUSED_STREAM, GET", refuse, get, 204, 2},
		{"REFUSED_STREAM, POST", refuse, post("abc"), 204, 1},
		{"REFUSED_STREAM, POST without a body", refuse, post(""), 204, 2},
		{"GOAWAY, GET", leave, get, 204, 2},
		{"GOAWAY, POST", leave, post("abc"), 204, 1},
		{"PROTOCOL_ERROR, POST", malformed, post("abc"), 502, 1},
		{"PROTOCOL_ERROR, PUT", malformed, "PUT" + post("abc")[4:], 204, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got atomic.Int64
			bad := start(t, framed(func(fr *http2.Framer, f *http2.MetaHeadersFrame) {
				got.Add(1)
				c.refuse(fr, f.StreamID)
			}))
			good := start(t, framed(func(fr *http2.Framer, f *http2.MetaHeadersFrame) { respond(fr, f.StreamID, ":status: 204") }))
			s := &setup{}
			s.up.Protocol, s.up.Balance.Policy = proxy.ProtocolHTTP2, proxy.PolicyRoundRobin
			client := s.start(t, chert.EngineGoroutines, bad.addr(), good.addr()).Dial()
			status, method := 0, strings.Fields(c.in)[0]
			for got.Load() == 0 { // the first or the second begins at the server that does not accept it
				client.Send(c.in)
				res, _ := client.Response(method)
				status = res.StatusCode
			}
			if status != c.status {
				t.Error(status, s.log)
			}
			if n := got.Load(); n != c.got {
				t.Errorf("sent %d times", n)
			}
			if st := s.pool.Status()[0].Servers[0]; st.Failures > 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestLongHTTP2: a body that is longer than declared is not passed on as if it were whole (RFC 9113 section 8.1.1).
func TestLongHTTP2(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		o := start(t, framed(func(fr *http2.Framer, f *http2.MetaHeadersFrame) {
			fr.WriteHeaders(http2.HeadersFrameParam{StreamID: f.StreamID,
				BlockFragment: block([]string{":status: 200", "content-length: 2"}), EndHeaders: true})
			fr.WriteData(f.StreamID, true, []byte("123"))
		}))
		s := &setup{}
		s.up.Protocol = proxy.ProtocolHTTP2
		client := s.start(t, e, o.addr()).Dial()
		client.Send(get)
		if got := client.UpToEnd(); !strings.Contains(got, "Content-Length: 2\r\n") || !strings.HasSuffix(got, "\r\n\r\n") {
			t.Errorf("%q, %s", got, s.log)
		}
	})
}

// TestLongLaterHTTP2: the same if what is too much comes later, in a frame of its own: the last bytes wait for the
// stream's end.
func TestLongLaterHTTP2(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		more := make(chan bool)
		o := start(t, framed(func(fr *http2.Framer, f *http2.MetaHeadersFrame) {
			fr.WriteHeaders(http2.HeadersFrameParam{StreamID: f.StreamID,
				BlockFragment: block([]string{":status: 200", "content-length: 2"}), EndHeaders: true})
			fr.WriteData(f.StreamID, false, []byte("12"))
			<-more
			fr.WriteData(f.StreamID, true, []byte("3"))
		}))
		s := &setup{}
		s.up.Protocol = proxy.ProtocolHTTP2
		client := s.start(t, e, o.addr()).Dial()
		client.Send(get)
		client.Head()
		close(more)
		if got := client.UpToEnd(); got != "" {
			t.Errorf("%q, %s", got, s.log)
		}
	})
}

// TestFailedAfterInterimHTTP2: after an interim response, which the client has, no other server is tried, as with
// HTTP/1.
func TestFailedAfterInterimHTTP2(t *testing.T) {
	t.Parallel()
	var got atomic.Int64
	serve := framed(func(fr *http2.Framer, f *http2.MetaHeadersFrame) {
		got.Add(1)
		fr.WriteHeaders(http2.HeadersFrameParam{StreamID: f.StreamID, BlockFragment: block([]string{":status: 103"}), EndHeaders: true})
		fr.WriteRSTStream(f.StreamID, http2.ErrCodeInternal)
	})
	s := &setup{}
	s.up.Protocol = proxy.ProtocolHTTP2
	client := s.start(t, chert.EngineGoroutines, start(t, serve).addr(), start(t, serve).addr()).Dial()
	client.Send(get)
	client.Status(103)
	client.Status(502)
	if n := got.Load(); n != 1 {
		t.Errorf("sent %d times, %s", n, s.log)
	}
}

// TestNotModifiedHTTP2: a 304 may have the length of what it does not contain (RFC 9110 section 8.6).
func TestNotModifiedHTTP2(t *testing.T) {
	t.Parallel()
	o := start(t, framed(func(fr *http2.Framer, f *http2.MetaHeadersFrame) {
		respond(fr, f.StreamID, ":status: 304", "etag: \"x\"", "content-length: 100")
	}))
	s := &setup{}
	s.up.Protocol = proxy.ProtocolHTTP2
	client := s.start(t, chert.EngineGoroutines, o.addr()).Dial()
	for range 2 {
		client.Send(get)
		if res, _ := client.Response("GET"); res.StatusCode != 304 || res.Header.Get("Etag") != `"x"` {
			t.Error(res.Status, res.Header, s.log)
		}
	}
	if st := s.pool.Status()[0].Servers[0]; st.Failures > 0 {
		t.Errorf("%+v", st)
	}
}

// TestNoContentHTTP2: a 204 or 304 ends with its head (RFC 9110 section 15.3.5), although the server has not ended the
// stream, which is reset. What it sends meanwhile is dropped.
func TestNoContentHTTP2(t *testing.T) {
	for _, tt := range []struct{ status, length, data string }{{"204", "", ""}, {"304", "100", ""}, {"304", "3", "abc"}} {
		t.Run(tt.status+tt.data, func(t *testing.T) {
			alike(t, func(t *testing.T, e chert.Engine) { noContent(t, e, tt.status, tt.length, tt.data) })
		})
	}
}

func noContent(t *testing.T, e chert.Engine, status, length, data string) {
	reset := make(chan http2.ErrCode, 2)
	o := start(t, func(c *conn) {
		io.ReadFull(c.r, make([]byte, len(http2.ClientPreface)))
		fr := http2.NewFramer(c, c.r)
		fr.WriteSettings()
		for {
			f, err := fr.ReadFrame()
			if err != nil {
				return
			}
			switch f := f.(type) {
			case *http2.HeadersFrame:
				fields := []string{":status: " + status}
				if length != "" {
					fields = append(fields, "content-length: "+length)
				}
				fr.WriteHeaders(http2.HeadersFrameParam{StreamID: f.StreamID, BlockFragment: block(fields), EndHeaders: true})
				if data != "" {
					fr.WriteData(f.StreamID, false, []byte(data))
				}
			case *http2.RSTStreamFrame:
				reset <- f.ErrCode
			}
		}
	})
	s := &setup{}
	s.up.Protocol = proxy.ProtocolHTTP2
	client := s.start(t, e, o.addr()).Dial()
	for range 2 {
		client.Send(get)
		if res, body := client.Response("GET"); res.Status[:3] != status || body != "" {
			t.Errorf("%s %q %s", res.Status, body, s.log)
		}
		if code := servertest.Await(t, reset, "the reset"); code != http2.ErrCodeCancel {
			t.Error(code)
		}
	}
	if st := s.pool.Status()[0].Servers[0]; st.Failures > 0 || o.dials() != 1 {
		t.Errorf("%+v, %d connections", st, o.dials())
	}
}

// TestLargeHeadHTTP2: a head that is larger than a server takes is the client's fault.
func TestLargeHeadHTTP2(t *testing.T) {
	t.Parallel()
	o := start(t, framed(func(fr *http2.Framer, f *http2.MetaHeadersFrame) { respond(fr, f.StreamID, ":status: 204") },
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: 16 << 10}))
	s := &setup{}
	s.up.Protocol = proxy.ProtocolHTTP2
	client := s.start(t, chert.EngineGoroutines, o.addr()).Dial()
	for _, c := range []struct{ size, status int }{{0, 204}, {20 << 10, 431}, {20 << 10, 431}, {0, 204}} {
		client.Send("GET / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", c.size) + "\r\n\r\n")
		if res, _ := client.Response("GET"); res.StatusCode != c.status {
			t.Error(res.Status, s.log)
		}
	}
	if st := s.pool.Status()[0].Servers[0]; st.Failures > 0 || o.dials() != 1 {
		t.Errorf("%+v", st)
	}
}

// TestFieldsHTTP2: a response of HTTP/2 has no more fields than one of HTTP/1 may have.
func TestFieldsHTTP2(t *testing.T) {
	t.Parallel()
	o := start(t, framed(func(fr *http2.Framer, f *http2.MetaHeadersFrame) {
		fields := []string{":status: 200"}
		for range len(f.PseudoValue("path")) - 1 {
			fields = append(fields, "x: y")
		}
		respond(fr, f.StreamID, fields...)
	}))
	s := &setup{}
	s.up.Protocol = proxy.ProtocolHTTP2
	client := s.start(t, chert.EngineGoroutines, o.addr()).Dial()
	for _, c := range []struct{ fields, status int }{{128, 200}, {129, 502}} {
		client.Send("GET /" + strings.Repeat("x", c.fields) + " HTTP/1.1\r\nHost: h\r\n\r\n")
		if res, _ := client.Response("GET"); res.StatusCode != c.status {
			t.Error(c.fields, res.Status, s.log)
		}
	}
}

// TestWindowHTTP2: a server may send little to a client that does not read.
func TestWindowHTTP2(t *testing.T) {
	t.Parallel()
	window := make(chan uint32, 1)
	o := start(t, func(c *conn) {
		io.ReadFull(c.r, make([]byte, len(http2.ClientPreface)))
		f, err := http2.NewFramer(c, c.r).ReadFrame()
		if settings, ok := f.(*http2.SettingsFrame); ok && err == nil {
			size, _ := settings.Value(http2.SettingInitialWindowSize)
			window <- size
		}
	})
	s := &setup{}
	s.up.Protocol = proxy.ProtocolHTTP2
	s.start(t, chert.EngineGoroutines, o.addr()).Dial().Send(get)
	if got := <-window; got > 256<<10 {
		t.Error(got)
	}
}

// TestCheckClosesHTTP2: a check that is not answered leaves no connection.
func TestCheckClosesHTTP2(t *testing.T) {
	t.Parallel()
	var began, ended atomic.Int64
	serve := framed(func(*http2.Framer, *http2.MetaHeadersFrame) { began.Add(1) })
	o := start(t, func(c *conn) {
		serve(c)
		ended.Add(1)
	})
	s := &setup{}
	s.up.Protocol = proxy.ProtocolHTTP2
	s.up.Check = &proxy.Check{Path: "/", Interval: 50 * time.Millisecond, Timeout: 20 * time.Millisecond}
	s.handler(t, o.addr())
	servertest.Eventually(t, "ten checks have left nothing", func() bool { return ended.Load() >= 10 })
	if n := began.Load(); n > 100 { // each may last for a second
		t.Errorf("of %d", n)
	}
}

// TestComplaintHTTP2: a server that ends a connection because of what it has received is not blamed.
func TestComplaintHTTP2(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code   http2.ErrCode
		blamed bool
	}{
		{http2.ErrCodeCompression, false}, {http2.ErrCodeEnhanceYourCalm, false}, {http2.ErrCodeInternal, true},
	} {
		for _, last := range []uint32{0, 1} {
			o := start(t, func(c2 *conn) {
				framed(func(fr *http2.Framer, f *http2.MetaHeadersFrame) {
					fr.WriteGoAway(last, c.code, []byte(`", ErrCode=x,`))
					c2.Close()
				})(c2)
			})
			s := &setup{}
			s.up.Protocol = proxy.ProtocolHTTP2
			client := s.start(t, chert.EngineGoroutines, o.addr()).Dial()
			client.Send(get)
			if res, _ := client.Response("GET"); res.StatusCode != 502 {
				t.Error(c, last, res.Status, s.log)
			}
			if st := s.pool.Status()[0].Servers[0]; (st.Failures > 0) != c.blamed {
				t.Errorf("%v, last %d: %+v", c, last, st)
			}
		}
	}
}

// unwilling is a client that takes no interim response before it may.
type unwilling struct {
	*httptest.ResponseRecorder
	asked, may chan bool
}

func (w *unwilling) WriteHeader(status int) {
	if status == http.StatusEarlyHints {
		w.asked <- true
		<-w.may
		return
	}
	w.ResponseRecorder.WriteHeader(status)
}

// TestUnwillingClientHTTP2: a client that takes no interim response does not keep those of other requests, which share
// the connection to the server, and gets its response after it.
func TestUnwillingClientHTTP2(t *testing.T) {
	t.Parallel()
	o := start(t, framed(func(fr *http2.Framer, f *http2.MetaHeadersFrame) {
		if f.PseudoValue("path") == "/hints" {
			fr.WriteHeaders(http2.HeadersFrameParam{StreamID: f.StreamID, BlockFragment: block([]string{":status: 103"}), EndHeaders: true})
		}
		respond(fr, f.StreamID, ":status: 204")
	}))
	s := &setup{}
	s.up.Protocol = proxy.ProtocolHTTP2
	h := s.handler(t, o.addr())
	w := &unwilling{httptest.NewRecorder(), make(chan bool), make(chan bool)}
	slow, other := make(chan bool), make(chan bool)
	go func() {
		h.ServeHTTP(w, httptest.NewRequest("GET", "/hints", nil))
		close(slow)
	}()
	servertest.Await(t, w.asked, "the interim response")
	go func() {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		close(other)
	}()
	servertest.Await(t, other, "the other response")
	if w.may <- true; o.dials() != 1 {
		t.Errorf("%d connections", o.dials())
	}
	if servertest.Await(t, slow, "the response"); w.Code != http.StatusNoContent {
		t.Error(w.Code, s.log)
	}
}

// panicking is a client whose middleware panics at an interim response.
type panicking struct{ *httptest.ResponseRecorder }

func (w panicking) WriteHeader(status int) {
	if status == http.StatusEarlyHints {
		panic(http.ErrAbortHandler)
	}
	w.ResponseRecorder.WriteHeader(status)
}

// TestInterimPanicsHTTP2: a panic of middleware at an interim response is the handler's, which ends its request alone.
func TestInterimPanicsHTTP2(t *testing.T) {
	t.Parallel()
	o := start(t, framed(func(fr *http2.Framer, f *http2.MetaHeadersFrame) {
		hint := http2.HeadersFrameParam{StreamID: f.StreamID, BlockFragment: block([]string{":status: 103"}), EndHeaders: true}
		if fr.WriteHeaders(hint); f.PseudoValue("path") == "/" {
			respond(fr, f.StreamID, ":status: 204")
		}
	}))
	s := &setup{}
	s.up.Protocol = proxy.ProtocolHTTP2
	h := s.handler(t, o.addr())
	for _, path := range []string{"/", "/only-hints"} {
		func() {
			defer func() {
				if v := recover(); v != http.ErrAbortHandler {
					t.Errorf("%s: it has panicked with %v", path, v)
				}
			}()
			h.ServeHTTP(panicking{httptest.NewRecorder()}, httptest.NewRequest("GET", path, nil))
		}()
	}
	if st := s.pool.Status()[0].Servers[0]; st.Failures > 0 || st.InFlight > 0 {
		t.Errorf("%+v", st)
	}
}
