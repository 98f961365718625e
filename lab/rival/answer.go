package rival

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Answer is what must be the same for all servers before they are compared; and Size, which need not be.
type Answer struct {
	Status int
	Type   string // Content-Type
	Length int64  // Content-Length
	Body   string
	Size   int // bytes of the whole response, head included
}

// Fetch sends the request wrk sends and reads one answer. The connection must be left open by the server: a run that
// makes a new one for each request measures something else.
func Fetch(ctx context.Context, addr, path string) (Answer, error) {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return Answer{}, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, addr); err != nil {
		return Answer{}, err
	}
	counted := &countingReader{r: c}
	r := bufio.NewReader(counted)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return Answer{}, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{}, err
	}
	if resp.Close {
		return Answer{}, fmt.Errorf("%s closes the connection after its answer", addr)
	}
	return Answer{
		Status: resp.StatusCode,
		Type:   resp.Header.Get("Content-Type"),
		Length: resp.ContentLength,
		Body:   string(body),
		Size:   counted.n - r.Buffered(),
	}, nil
}

// Differs says how a is not as wanted; nil if only Size differs.
func (a Answer) Differs(want Answer) error {
	a.Size, want.Size = 0, 0
	if a != want {
		return fmt.Errorf("answers %+v, want %+v", a, want)
	}
	return nil
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
