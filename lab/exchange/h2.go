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
	transport := &http.Transport{ForceAttemptHTTP2: true, DisableCompression: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	return fetchBy(ctx, transport, 2, addr, r)
}

// fetchBy fetches by a transport, over one version of HTTP and no other.
func fetchBy(ctx context.Context, transport http.RoundTripper, version int, addr string, r Request) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, "https://"+addr+r.Path, strings.NewReader(r.Body))
	if err != nil {
		return Answer{}, err
	}
	if r.Type != "" {
		req.Header.Set("Content-Type", r.Type)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	if resp.ProtoMajor != version {
		return Answer{}, fmt.Errorf("the server speaks %s, not HTTP/%d", resp.Proto, version)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{}, err
	}
	return Answer{Status: resp.StatusCode, Type: resp.Header.Get("Content-Type"), Length: resp.ContentLength, Body: string(body), Size: len(body)}, nil
}
