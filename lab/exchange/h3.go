package exchange

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/quic-go/quic-go/http3"
)

// FetchH3 is FetchH2 over HTTP/3, at the same address of UDP.
func FetchH3(ctx context.Context, addr string, r Request) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	transport := &http3.Transport{DisableCompression: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.Close()
	return fetchBy(ctx, transport, 3, addr, r)
}
