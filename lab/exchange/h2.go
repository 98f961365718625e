package exchange

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// FetchH2 is Fetch over TLS and HTTP/2: it fails if the server speaks anything else. It knows no
// pipelining, and Size is that of the body alone.
func FetchH2(ctx context.Context, addr string, r Request) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.Method, "https://"+addr+r.Path, strings.NewReader(r.Body))
	if err != nil {
		return Answer{}, err
	}
	if r.Type != "" {
		req.Header.Set("Content-Type", r.Type)
	}
	transport := &http.Transport{ForceAttemptHTTP2: true, DisableCompression: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	if resp.ProtoMajor != 2 {
		return Answer{}, fmt.Errorf("the server speaks %s, not HTTP/2", resp.Proto)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{}, err
	}
	return Answer{Status: resp.StatusCode, Type: resp.Header.Get("Content-Type"), Length: resp.ContentLength, Body: string(body), Size: len(body)}, nil
}
