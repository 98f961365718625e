//go:build unix

package spread

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

// ask sends requests as one client, on one connection, and counts those that were admitted.
func (r *run) ask(ctx context.Context, client, n int) (admitted int, err error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, byte(1+client>>16), byte(client>>8), byte(client))}}
	c, err := d.DialContext(ctx, "tcp", r.address)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	in := bufio.NewReader(c)
	for range n {
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: app\r\n\r\n"); err != nil {
			return admitted, err
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return admitted, err
		}
		body, err := io.ReadAll(res.Body)
		switch {
		case err != nil:
			return admitted, err
		case res.StatusCode == http.StatusOK:
			admitted++
			r.at[client] = string(body)
		case res.StatusCode != http.StatusTooManyRequests:
			return admitted, fmt.Errorf("%s: %.100q", res.Status, body)
		}
	}
	if r.at[client] == "" {
		return admitted, errors.New("no request was admitted")
	}
	return admitted, nil
}
