package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// Page is a document and the files that it names.
type Page struct {
	Document PageFile
	Rest     []PageFile
}

// PageFile is a file of a page, and what must be in it.
type PageFile struct{ Path, Content string }

// Browser fetches pages from one server over one version of HTTP, and keeps its connections.
type Browser struct {
	addr   string
	major  int
	client http.RoundTripper
	close  func()
}

// browserConnections is how many connections of HTTP/1 browsers open to a server. Of other versions they open one.
const browserConnections = 6

// OpenBrowser returns a browser without any connection; major is 1, 2 or 3.
func OpenBrowser(addr string, major int) *Browser {
	secure := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
	if major == 3 {
		t := &http3.Transport{DisableCompression: true, TLSClientConfig: secure,
			// They do not limit the server, as those of HTTP/2 do not, which net/http's client has.
			QUICConfig: &quic.Config{InitialStreamReceiveWindow: 4 << 20, InitialConnectionReceiveWindow: 8 << 20}}
		return &Browser{addr, major, t, func() { t.Close() }}
	}
	t := &http.Transport{DisableCompression: true, TLSClientConfig: secure, Protocols: new(http.Protocols)}
	if major == 2 {
		t.Protocols.SetHTTP2(true)
	} else {
		t.Protocols.SetHTTP1(true)
		t.MaxConnsPerHost, t.MaxIdleConnsPerHost = browserConnections, browserConnections
	}
	return &Browser{addr, major, t, t.CloseIdleConnections}
}

// Close closes the connections, none of which may be in use.
func (b *Browser) Close() { b.close() }

// Fetched is how long a page took, with the opening of connections that were needed.
type Fetched struct {
	Page time.Duration // until the last file was complete
	File time.Duration // until a file was, on average, also from the beginning of the page
}

// Fetch fetches the document of a page, then all else at the same time.
func (b *Browser) Fetch(ctx context.Context, p Page) (Fetched, error) {
	begin := time.Now()
	if err := b.get(ctx, p.Document); err != nil {
		return Fetched{}, err
	}
	sum := time.Since(begin)
	errs, took := make([]error, len(p.Rest)), make([]time.Duration, len(p.Rest))
	var all sync.WaitGroup
	for i, f := range p.Rest {
		all.Go(func() {
			errs[i] = b.get(ctx, f)
			took[i] = time.Since(begin)
		})
	}
	all.Wait()
	whole := time.Since(begin)
	for _, d := range took {
		sum += d
	}
	return Fetched{Page: whole, File: sum / time.Duration(1+len(took))}, errors.Join(errs...)
}

func (b *Browser) get(ctx context.Context, f PageFile) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+b.addr+f.Path, nil)
	if err != nil {
		return err
	}
	resp, err := b.client.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", f.Path, err)
	case resp.StatusCode != http.StatusOK || resp.ProtoMajor != b.major:
		return fmt.Errorf("%s: status %d over %s", f.Path, resp.StatusCode, resp.Proto)
	case string(body) != f.Content:
		return fmt.Errorf("%s: %d bytes, which are not the file's %d", f.Path, len(body), len(f.Content))
	}
	return nil
}
