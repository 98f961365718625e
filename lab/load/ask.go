package load

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// ask sends a request and reads the answer, which must be 200 and leave the connection open. r reads from c.
func ask(c net.Conn, r *bufio.Reader, request string) error {
	c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(c, request); err != nil {
		return err
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK || resp.Close {
		return fmt.Errorf("status %d, closing: %t", resp.StatusCode, resp.Close)
	}
	return nil
}
