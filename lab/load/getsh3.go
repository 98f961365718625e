package load

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/quic-go/qpack"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/quicvarint"
)

// quicConn is a client's connection of HTTP/3 that does no more than the load needs: what costs the client time is time in
// which the server waits.
type quicConn struct {
	*quic.Conn
	control *quic.SendStream
}

// quicDial opens a connection, by a socket of its own unless there is a transport.
func quicDial(ctx context.Context, by *quic.Transport, addr string) (quicConn, error) {
	secure := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h3"}}
	// The windows of a client that downloads: they do not limit the server.
	cfg := &quic.Config{InitialStreamReceiveWindow: 4 << 20, InitialConnectionReceiveWindow: 8 << 20, MaxIdleTimeout: time.Hour}
	var c *quic.Conn
	to, err := net.ResolveUDPAddr("udp", addr)
	switch {
	case err != nil:
	case by != nil:
		c, err = by.Dial(ctx, to, secure, cfg)
	default:
		c, err = quic.DialAddr(ctx, addr, secure, cfg)
	}
	if err != nil {
		return quicConn{}, err
	}
	control, err := c.OpenUniStream()
	if err == nil {
		_, err = control.Write([]byte{streamControl, h3Settings, 0}) // RFC 9114 section 6.2.1
	}
	if err != nil {
		c.CloseWithError(h3NoError, "")
		return quicConn{}, err
	}
	return quicConn{c, control}, nil
}

// Types of streams and frames, and codes (RFC 9114 sections 6.2 and 7.2, 8.1).
const (
	streamControl                 = 0
	h3Data, h3Headers, h3Settings = 0, 1, 4
	h3NoError                     = 0x100
	mostHead                      = 16 << 10
)

// h3Get is a HEADERS frame with a GET, from the static table of RFC 9204 appendix A.
func h3Get(addr, path string) ([]byte, error) {
	const most = 126 // a length in one byte
	if len(path) > most || len(addr) > most {
		return nil, fmt.Errorf("the path %q is too long", path)
	}
	block := []byte{0, 0, 0xc0 | 17, 0xc0 | 23} // no dynamic table; GET, https
	block = append(append(block, 0x50, byte(len(addr))), addr...)
	block = append(append(block, 0x51, byte(len(path))), path...)
	return append(quicvarint.Append([]byte{h3Headers}, uint64(len(block))), block...), nil
}

// ask sends a request, and returns the stream that its answer comes on.
func (c quicConn) ask(ctx context.Context, request []byte) (*quic.Stream, error) {
	str, err := c.OpenStreamSync(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := str.Write(request); err != nil {
		return nil, err
	}
	// A server that has answered may already have told that it reads no more (RFC 9114 section 4.1), and then there is
	// nothing to close. Where the connection has ended, reading the answer says so.
	str.Close()
	return str, nil
}

// get sends a request and reads the answer to its end. It returns the length of the body; another status than 200 is an
// error. r is only a buffer.
func (c quicConn) get(ctx context.Context, request []byte, r *bufio.Reader) (int64, error) {
	str, err := c.ask(ctx, request)
	if err != nil {
		return 0, err
	}
	r.Reset(str)
	if err := h3Head(r); err != nil {
		return 0, err
	}
	return io.Copy(io.Discard, &h3Body{r: r})
}

// h3Head reads the response's head, whose status must be 200.
func h3Head(r *bufio.Reader) error {
	n, err := h3Frame(r, h3Headers)
	if err != nil {
		return err
	}
	if n > mostHead {
		return fmt.Errorf("a head of %d bytes", n)
	}
	block := make([]byte, n)
	if _, err := io.ReadFull(r, block); err != nil {
		return err
	}
	if n > 2 && block[2] == 0xc0|25 { // :status 200 of the static table
		return nil
	}
	next := qpack.NewDecoder().Decode(block)
	f, err := next()
	if err != nil {
		return err
	}
	if f.Name != ":status" || f.Value != "200" {
		return fmt.Errorf("the status is not 200: the head begins with %s %s", f.Name, f.Value)
	}
	return nil
}

// h3Frame reads the head of a frame, and skips those of other types. The end of the stream is io.EOF.
func h3Frame(r *bufio.Reader, wanted uint64) (length int64, err error) {
	for {
		kind, err := quicvarint.Read(r)
		if err != nil {
			return 0, err
		}
		n, err := quicvarint.Read(r)
		if err != nil {
			return 0, errors.Join(io.ErrUnexpectedEOF, err)
		}
		if kind == wanted {
			return int64(n), nil
		}
		if kind <= h3Headers {
			return 0, fmt.Errorf("a frame of type %d instead of %d", kind, wanted)
		}
		if _, err := r.Discard(int(n)); err != nil {
			return 0, err
		}
	}
}

// h3Body reads what DATA frames have.
type h3Body struct {
	r    *bufio.Reader
	left int64 // of the frame
}

func (b *h3Body) Read(p []byte) (n int, err error) {
	for b.left == 0 {
		if b.left, err = h3Frame(b.r, h3Data); err != nil {
			return 0, err
		}
	}
	n, err = b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

func (c quicConn) close() { c.CloseWithError(h3NoError, "") }

// getterH3 is a connection of HTTP/3.
type getterH3 struct {
	quicConn
	request []byte
}

func openGetterH3(ctx context.Context, addr, path string) (getter, error) {
	request, err := h3Get(addr, path)
	if err != nil {
		return nil, err
	}
	c, err := quicDial(ctx, nil, addr)
	return getterH3{c, request}, err
}

// converse implements getter. Each stream that is under way has a goroutine.
func (c getterH3) converse(ctx context.Context, g Gets, end time.Time) (took []time.Duration, err error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for range g.Streams {
		all.Go(func() {
			own, failed := c.one(ctx, g, end)
			mu.Lock()
			defer mu.Unlock()
			took = append(took, own...)
			if failed != nil && err == nil {
				err = failed
				c.close() // which ends the other streams
			}
		})
	}
	all.Wait()
	return took, err
}

// one has one request under way, and the first whatever the time.
func (c getterH3) one(ctx context.Context, g Gets, end time.Time) (took []time.Duration, err error) {
	r := bufio.NewReaderSize(nil, 32<<10)
	for begin := time.Now(); len(took) == 0 || begin.Before(end); {
		n, err := c.get(ctx, c.request, r)
		if err == nil {
			err = g.checkLength(n)
		}
		if err != nil {
			return took, err
		}
		now := time.Now()
		took = append(took, now.Sub(begin))
		begin = now
	}
	return took, nil
}
