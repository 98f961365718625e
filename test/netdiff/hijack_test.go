package netdiff

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/test/internal/unlike"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestDiffHijack(t *testing.T) { diffRun(t, diffHijacks) }

// taken runs f on a hijacked connection and closes it.
func taken(f func(s *scene, nc net.Conn, b *bufio.ReadWriter)) diffHandler {
	return func(s *scene, w rw, r *http.Request) {
		nc, b, err := http.NewResponseController(w).Hijack()
		if err != nil {
			s.note("Hijack: %s", errNote(err))
			return
		}
		defer nc.Close()
		f(s, nc, b)
	}
}

// echoed sends 101 and echoes, until the client ends.
func echoed(s *scene, nc net.Conn, b *bufio.ReadWriter) {
	put(b, switched)
	b.Flush()
	n, err := io.Copy(nc, b)
	s.note("echoed %d %s", n, errNote(err))
}

// ahead records everything that was sent, to its end.
func ahead(s *scene, nc net.Conn, b *bufio.ReadWriter) {
	got, err := io.ReadAll(b)
	s.note("came %q %s", got, errNote(err))
	put(nc, "bye")
}

var switchTo = []string{"Connection: Upgrade", "Upgrade: echo"}

var diffHijacks = []diffCase{
	{name: "an echo", do: say(ask("GET /", switchTo...)).hear(switched).say("hello").hear("hello").halfClose(), h: taken(echoed)},
	{name: "an echo of what is sent ahead", do: say(ask("GET /", switchTo...) + "ahead").hear("ahead").say("more").hear("more").halfClose(), h: taken(echoed)},
	{name: "an echo of much sent ahead", do: say(ask("GET /", switchTo...) + string(servertest.Pattern(50_000))).halfClose(), h: taken(echoed)},
	{name: "an echo without a pause", do: say(ask("GET /", switchTo...) + "a").say("b").say("c").halfClose(), h: taken(echoed)},
	{name: "the second request", do: say(ask("GET /quiet") + ask("GET /", switchTo...)).hear(switched).say("hello").hear("hello").halfClose(), h: func(s *scene, w rw, r *http.Request) {
		if r.URL.Path == "/" {
			taken(echoed)(s, w, r)
		}
	}},
	{name: "after a body", do: say(post("/", "abc", switchTo...)).hear(switched).say("hello").hear("hello").halfClose(), h: func(s *scene, w rw, r *http.Request) {
		s.readBody(r)
		taken(echoed)(s, w, r)
	}},
	{name: "after a body in chunks", do: say(postChunks("/", servertest.Chunks("hello", 2), switchTo...) + "x").hear("x").halfClose(), h: func(s *scene, w rw, r *http.Request) {
		s.readBody(r)
		taken(echoed)(s, w, r)
	}},
	{name: "over an unread body", do: say(post("/", "abc") + "def").halfClose(), h: taken(ahead)},
	{name: "over a body that is not sent", do: say(ask("POST /", length5)).hear("bye").halfClose(), h: taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) { put(nc, "bye") })},
	{name: "over an unread body in chunks", do: say(postChunks("/", servertest.Chunks("hello", 2))).halfClose(), h: taken(ahead)},
	{name: "over a body of which some is read", do: say(post("/", "hello, world")).halfClose(), h: func(s *scene, w rw, r *http.Request) {
		s.readSome(r, 5)
		taken(ahead)(s, w, r)
	}},
	{name: "over an expectation", do: say(ask("POST /", expect, length5)).hear("go on").say("hello").halfClose(), h: func(s *scene, w rw, r *http.Request) {
		nc, b, err := w.(http.Hijacker).Hijack()
		s.note("Hijack: %s", errNote(err))
		defer nc.Close()
		put(nc, "go on")
		ahead(s, nc, b)
	}},
	{name: "with a request after it", do: say(ask("GET /") + smuggled).halfClose(), h: taken(ahead)},
	{name: "of 1.0", do: say(ask10("GET /") + "x").halfClose(), h: taken(ahead)},
	{name: "of HEAD", do: say(ask("HEAD /") + "x").halfClose(), h: taken(ahead)},
	{name: "of CONNECT", do: say(ask("CONNECT other:443") + "x").halfClose(), h: taken(ahead)},
	{name: "of close", do: say(ask("GET /", "Connection: close") + "x").halfClose(), h: taken(ahead)},
	{name: "nothing is said", send: ask("GET /"), h: taken(func(*scene, net.Conn, *bufio.ReadWriter) {})},
	{name: "a response by hand", send: ask("GET /"), h: taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) {
		put(nc, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
	})},
	{name: "what is not flushed is lost", send: ask("GET /"), h: taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) { put(b, "lost"); put(nc, "sent") })},
	{name: "the writer's size", send: ask("GET /"), h: taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) {
		s.note("%d", b.Writer.Size())
		n, err := b.Write(servertest.Pattern(10_000))
		s.note("%d %s, %d left", n, errNote(err), b.Writer.Buffered())
		b.Flush()
	})},
	{name: "what is buffered", whole: "how much has come is what it is about", do: say(ask("GET /") + "ahead").halfClose(), h: taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) {
		got, err := b.Peek(b.Reader.Buffered())
		s.note("%q %s", got, errNote(err))
	})},
	{name: "the body is buffered", whole: "how much has come is what it is about", do: say(post("/", "hello")).halfClose(), h: taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) {
		got, err := b.Peek(b.Reader.Buffered())
		s.note("%q %s", got, errNote(err))
	})},
	{name: "read from the connection itself", do: say(ask("GET /")).hear("go on").say("x").halfClose(), h: taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) {
		put(nc, "go on")
		got, err := io.ReadAll(nc)
		s.note("%q %s", got, errNote(err))
	})},
	{name: "a TCP connection", send: ask("GET /"), h: func(s *scene, w rw, r *http.Request) {
		taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) {
			local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
			s.note("%T %v %v", nc, nc.RemoteAddr().String() == r.RemoteAddr, nc.LocalAddr().String() == local.String())
		})(s, w, r)
	}},
	{name: "no deadlines are left", do: say(ask("GET /")).hear("go on").say("x").halfClose(), set: func(s *chert.Server) {
		s.ReadTimeout, s.WriteTimeout = time.Hour, time.Hour
	}, h: func(s *scene, w rw, r *http.Request) {
		rc := http.NewResponseController(w)
		rc.SetReadDeadline(time.Unix(1, 0))
		rc.SetWriteDeadline(time.Unix(1, 0))
		taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) {
			_, err := nc.Write([]byte("go on"))
			s.note("%s", errNote(err))
			ahead(s, nc, b)
		})(s, w, r)
	}},
	{name: "a deadline of the hijacker", send: ask("GET /"), h: taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) {
		nc.SetReadDeadline(time.Unix(1, 0))
		_, err := b.ReadByte()
		s.note("%s", errNote(err))
		nc.SetWriteDeadline(time.Unix(1, 0))
		_, err = nc.Write([]byte("x"))
		s.note("%s", errNote(err))
	})},
	{name: "it outlives the handler", do: say(ask("GET /")).reach("returned").say("x").halfClose(), h: func(s *scene, w rw, r *http.Request) {
		nc, b, _ := w.(http.Hijacker).Hijack()
		s.spawn(func() {
			defer nc.Close()
			ahead(s, nc, b)
		})
		s.point("returned")
	}},
	{name: "half-closed by the hijacker", do: say(ask("GET /")).hearEnd().say("x").halfClose(), h: taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) {
		put(nc, "end")
		nc.(*net.TCPConn).CloseWrite()
		got, err := io.ReadAll(b)
		s.note("%q %s", got, errNote(err))
	})},

	// What was written before
	{name: "after WriteHeader", send: ask("GET /"), h: func(s *scene, w rw, r *http.Request) {
		set(w, "Connection", "Upgrade")
		set(w, "Upgrade", "echo")
		w.WriteHeader(101)
		taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) { put(nc, "hi") })(s, w, r)
	}},
	{name: "after WriteHeader 200", send: ask("GET /"), h: func(s *scene, w rw, r *http.Request) {
		w.WriteHeader(200)
		taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) { put(nc, "hi") })(s, w, r)
	}},
	{name: "after a flush", send: ask("GET /"), h: func(s *scene, w rw, r *http.Request) {
		set(w, "Content-Length", "6")
		put(w, "abc")
		s.flushed(w)
		taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) { put(nc, "def") })(s, w, r)
	}},
	{name: "after a write", send: ask("GET /"), h: func(s *scene, w rw, r *http.Request) {
		set(w, "Content-Length", "6")
		put(w, "abc")
		taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) { put(nc, "def") })(s, w, r)
	}, unlike: like(unlike.HijackWrite, sight{wire: plainAnswer("abcdef")})},
	{name: "after hints", send: ask("GET /"), h: func(s *scene, w rw, r *http.Request) {
		w.WriteHeader(103)
		taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) { put(nc, "hi") })(s, w, r)
	}},
	{name: "fields that were set are nothing", send: ask("GET /"), h: func(s *scene, w rw, r *http.Request) {
		set(w, "A", "1")
		taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) { put(nc, "hi") })(s, w, r)
	}},

	// Misuse
	{name: "twice", send: ask("GET /"), h: func(s *scene, w rw, r *http.Request) {
		taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) { taken(nil)(s, w, r) })(s, w, r)
	}},
	{name: "a write after it", send: ask("GET /"), h: func(s *scene, w rw, r *http.Request) {
		taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) {
			s.wrote(w, "x")
			s.wrote(w, "")
			s.wroteString(w, "x")
			w.WriteHeader(500)
			w.Header().Set("A", "1")
			put(nc, "end")
		})(s, w, r)
	}},
	{name: "a flush after it", send: ask("GET /"), h: func(s *scene, w rw, r *http.Request) {
		taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) {
			defer func() { s.note("panic: %v", recover()) }()
			s.flushed(w)
		})(s, w, r)
	}, unlike: like(unlike.AfterHijack, sight{log: nothing,
		handler: getNote + "\nFlush: \"http: connection has been hijacked\" [ErrHijacked]\npanic: <nil>"})},
	{name: "a copy after it", send: ask("GET /"), h: func(s *scene, w rw, r *http.Request) {
		taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) { s.copied(w, onlyReader{strings.NewReader("x")}) })(s, w, r)
	}},
	{name: "the body after it", do: say(post("/", "hello")).halfClose(), h: func(s *scene, w rw, r *http.Request) {
		taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) {
			got, err := io.ReadAll(r.Body)
			s.note("%q %s", got, errNote(err))
		})(s, w, r)
	}, unlike: like(unlike.AfterHijack, sight{handler: `POST "/" HTTP/1.1 host="h" header=map["Content-Length":["5"]] length=5 body` +
		"\n\"\" \"http: invalid Read on closed Body\" [ErrBodyReadAfterClose]"})},
	{name: "a panic after it", do: say(ask("GET /")).logs("after the hijack"), h: func(s *scene, w rw, r *http.Request) {
		nc, _, _ := w.(http.Hijacker).Hijack()
		s.spawn(func() {
			s.await("the panic", func() bool { return s.gates["panic"] > 0 })
			put(nc, "alive")
			nc.Close()
		})
		s.point("panic")
		panic("after the hijack")
	}},
	{name: "deadlines of the response after it", send: ask("GET /"), h: func(s *scene, w rw, r *http.Request) {
		taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) {
			rc := http.NewResponseController(w)
			s.note("%s %s", errNote(rc.SetReadDeadline(time.Time{})), errNote(rc.EnableFullDuplex()))
		})(s, w, r)
	}},

	// Its context
	{name: "the context after an end that was read", do: say(ask("GET /")).halfClose(), h: func(s *scene, w rw, r *http.Request) {
		taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) {
			_, err := io.ReadAll(b)
			s.note("%s, %v", errNote(err), r.Context().Err())
		})(s, w, r)
	}, unlike: like(unlike.HijackContext, sight{handler: getNote + "\nok, <nil>"})},
	{name: "the context after an end that the connection gave", do: say(ask("GET /")).reach("taken").halfClose(), h: func(s *scene, w rw, r *http.Request) {
		done := r.Context().Done()
		taken(func(s *scene, nc net.Conn, b *bufio.ReadWriter) {
			s.point("taken")
			_, err := io.ReadAll(nc)
			s.note("%s, %v", errNote(err), r.Context().Err())
			_ = done
		})(s, w, r)
	}},
	{name: "the context after the handler", do: say(ask("GET /")).reach("done").halfClose(), h: func(s *scene, w rw, r *http.Request) {
		ctx := r.Context()
		nc, _, _ := w.(http.Hijacker).Hijack()
		s.spawn(func() {
			<-ctx.Done()
			s.note("%v %v", ctx.Err(), context.Cause(ctx))
			s.point("done")
			nc.Close()
		})
	}},
}
