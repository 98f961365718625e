package load

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/chert-http/chert/lab/work"
)

// Stream sends requests with large bodies, or for large responses. Each connection sends the next one when the last
// was answered, until the time is over, and at least one; what has begun then is finished.
type Stream struct {
	Addr        string
	Method      string
	Path        string
	Send        int64 // bytes of the request's body; 0 for none
	Chunked     bool  // it has no length
	Receive     int64 // bytes of the response's body; 0: any
	Connections int
	Seconds     float64
}

// StreamResult is what came of it.
type StreamResult struct {
	Requests int64 // answered in full
	Elapsed  time.Duration
	Errors   int64  // connections that failed
	Fault    string // the first error
	// CPU is the processor time of the client program; Child sets it.
	CPU time.Duration `json:"-"`
}

// Run does it in this process.
func (s Stream) Run(ctx context.Context) (StreamResult, error) {
	var res StreamResult
	var mu sync.Mutex
	var all sync.WaitGroup
	begin := time.Now()
	end := begin.Add(time.Duration(s.Seconds * float64(time.Second)))
	for range s.Connections {
		all.Go(func() {
			n, err := s.converse(ctx, end)
			mu.Lock()
			defer mu.Unlock()
			res.Requests += n
			if err != nil {
				res.Errors++
				res.Fault = err.Error()
			}
		})
	}
	all.Wait()
	res.Elapsed = time.Since(begin)
	return res, ctx.Err()
}

// Child does it in a process on a core of its own. binary is the path of the program built in PaceFolder.
func (s Stream) Child(ctx context.Context, binary string, core int) (StreamResult, error) {
	var res StreamResult
	used, err := inChild(ctx, binary, core, "stream", s, &res)
	res.CPU = used
	return res, err
}

// converse is one connection. n requests were answered.
func (s Stream) converse(ctx context.Context, end time.Time) (n int64, err error) {
	dialer := net.Dialer{Timeout: 5 * time.Second}
	c, err := dialer.DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	r := bufio.NewReaderSize(c, 64<<10)
	rest := make([]byte, 64<<10)
	block := s.block()
	for n == 0 || time.Now().Before(end) {
		c.SetDeadline(end.Add(30 * time.Second))
		sent := make(chan error, 1)
		go func() { sent <- s.send(c, block) }()
		err := s.receive(r, rest)
		if err != nil {
			c.Close()
		}
		if e := <-sent; err == nil {
			err = e
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// block is a part of the body as it is sent, some pieces together so that the client has little to do.
func (s Stream) block() []byte {
	piece := make([]byte, work.StreamPiece)
	if s.Chunked {
		piece = fmt.Appendf(nil, "%x\r\n%s\r\n", len(piece), piece)
	}
	return bytes.Repeat(piece, 32)
}

// send sends one request. The length of a body that is chunked must be a multiple of a block's data.
func (s Stream) send(c net.Conn, block []byte) error {
	head := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\n", s.Method, s.Path, s.Addr)
	switch {
	case s.Chunked:
		head = append(head, "Transfer-Encoding: chunked\r\n"...)
	case s.Send > 0:
		head = fmt.Appendf(head, "Content-Length: %d\r\n", s.Send)
	}
	if _, err := c.Write(append(head, "\r\n"...)); err != nil {
		return err
	}
	for left := s.Send; left > 0; left -= 32 * work.StreamPiece {
		if _, err := c.Write(block); err != nil {
			return err
		}
	}
	if s.Chunked {
		_, err := io.WriteString(c, "0\r\n\r\n")
		return err
	}
	return nil
}

// receive reads one answer.
func (s Stream) receive(r *bufio.Reader, buf []byte) error {
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return err
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, resp.Body, buf)
	switch {
	case err != nil:
		return err
	case resp.StatusCode != http.StatusOK || resp.Close:
		return fmt.Errorf("status %d, closing: %t", resp.StatusCode, resp.Close)
	case s.Receive > 0 && n != s.Receive:
		return fmt.Errorf("an answer of %d bytes, not %d", n, s.Receive)
	}
	return nil
}
