package exchange

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Answer is what must be the same for all servers before they are compared; and Size, which need not be.
type Answer struct {
	Status int
	Type   string // Content-Type; empty in what is wanted: whichever
	Length int64  // Content-Length
	Body   string
	Size   int // bytes of the whole response, head included
}

// OK is the answer 200 with a body.
func OK(contentType, body string) Answer {
	return Answer{Status: http.StatusOK, Type: contentType, Length: int64(len(body)), Body: body}
}

// Fetch sends a request as the load sends it, pipelined as often, and returns the response, which must be the same
// each time. The server must leave the connection open, or close it if the request says so: otherwise the load
// would measure something else.
func Fetch(ctx context.Context, addr string, r Request) (Answer, error) {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return Answer{}, err
	}
	defer c.Close()
	return fetch(c, addr, r)
}

// FetchTLS is Fetch over TLS 1.3: it fails if another version is negotiated.
func FetchTLS(ctx context.Context, addr string, r Request) (Answer, error) {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}}
	c, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return Answer{}, err
	}
	defer c.Close()
	return fetch(c, addr, r)
}

func fetch(c net.Conn, addr string, r Request) (Answer, error) {
	c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(c, strings.Repeat(r.Text(addr), r.Depth())); err != nil {
		return Answer{}, err
	}
	counted := &countingReader{r: c}
	buffered := bufio.NewReader(counted)
	var first Answer
	for i := range r.Depth() {
		before := counted.n - buffered.Buffered()
		answer, err := read(buffered, r)
		if err != nil {
			return Answer{}, fmt.Errorf("answer %d of %d: %w", i+1, r.Depth(), err)
		}
		answer.Size = counted.n - buffered.Buffered() - before
		if i == 0 {
			first = answer
		} else if err := answer.Differs(first); err != nil {
			return Answer{}, fmt.Errorf("answer %d of %d is not the first one: %w", i+1, r.Depth(), err)
		}
	}
	return first, nil
}

func read(from *bufio.Reader, r Request) (Answer, error) {
	resp, err := http.ReadResponse(from, nil)
	if err != nil {
		return Answer{}, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{}, err
	}
	if resp.Close != r.Close {
		return Answer{}, fmt.Errorf("closes the connection after its answer: %t, want %t", resp.Close, r.Close)
	}
	return Answer{
		Status: resp.StatusCode,
		Type:   resp.Header.Get("Content-Type"),
		Length: resp.ContentLength,
		Body:   string(body),
	}, nil
}

// Differs says how a is not as wanted; nil if only Size differs, or a type that is not wanted.
func (a Answer) Differs(want Answer) error {
	a.Size, want.Size = 0, 0
	if want.Type == "" {
		a.Type = ""
	}
	if a != want {
		return fmt.Errorf("answers %s, want %s", a, want)
	}
	return nil
}

// String has the beginning of the body only.
func (a Answer) String() string {
	const enough = 200
	body := strconv.Quote(a.Body[:min(len(a.Body), enough)])
	if len(a.Body) > enough {
		body += fmt.Sprintf("... (%d bytes)", len(a.Body))
	}
	return fmt.Sprintf("status %d, type %q, length %d, body %s", a.Status, a.Type, a.Length, body)
}

type countingReader struct {
	r io.Reader
	n int
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += n
	return n, err
}
