package load

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// transportH2 makes requests over one connection to each server, with HTTP/2 where the server has it.
func transportH2() *http.Transport {
	return &http.Transport{ForceAttemptHTTP2: true, DisableCompression: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
}

// askH2 makes a GET and reads the answer, which must be 200 and over HTTP/2.
func askH2(ctx context.Context, t *http.Transport, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := t.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 {
		return fmt.Errorf("status %d over %s", resp.StatusCode, resp.Proto)
	}
	return nil
}

// postH2 makes a POST whose answer is a number.
func postH2(ctx context.Context, t *http.Transport, url string, body io.Reader, size int64) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return 0, err
	}
	req.ContentLength = size
	resp, err := t.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	if resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 {
		return 0, fmt.Errorf("status %d over %s: %s", resp.StatusCode, resp.Proto, text)
	}
	return strconv.ParseInt(string(text), 10, 64)
}
