package profile

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/measure"
	"github.com/chert-http/chert/lab/rival"
)

// waitingHead is a request as a browser sends it.
const waitingHead = "GET /wait HTTP/1.1\r\nHost: example.com\r\n" +
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n" +
	"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\nAccept-Language: en-GB,en;q=0.5\r\n" +
	"Accept-Encoding: gzip, deflate, br, zstd\r\nCookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\n" +
	"Sec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Site: none\r\n\r\n"

// waitingUpload is one whose client has sent a part of the body.
var waitingUpload = strings.Replace(strings.TrimSuffix(waitingHead, "\r\n"), "GET", "POST", 1) +
	"Transfer-Encoding: chunked\r\n\r\n64\r\n" + strings.Repeat("x", 100) + "\r\n"

// waitingStreams is how many requests one connection of HTTP/2 has.
const waitingStreams = 100

// waitingHTTP2 is what a connection of HTTP/2 sends for as many of the same requests.
func waitingHTTP2(upload bool) (string, error) {
	var out, block bytes.Buffer
	out.WriteString(http2.ClientPreface)
	fr := http2.NewFramer(&out, nil)
	enc := hpack.NewEncoder(&block)
	all := []error{fr.WriteSettings()}
	method := "GET"
	if upload {
		method = "POST"
	}
	for i := range waitingStreams {
		block.Reset()
		pseudo := [][2]string{{":method", method}, {":scheme", "https"}, {":authority", "example.com"}, {":path", "/wait"}}
		for _, f := range pseudo {
			all = append(all, enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}))
		}
		for _, line := range strings.Split(strings.TrimSuffix(waitingHead, "\r\n\r\n"), "\r\n")[2:] {
			name, value, _ := strings.Cut(line, ": ")
			all = append(all, enc.WriteField(hpack.HeaderField{Name: strings.ToLower(name), Value: value}))
		}
		id := uint32(2*i + 1)
		all = append(all, fr.WriteHeaders(http2.HeadersFrameParam{
			StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: !upload,
		}))
		if upload {
			all = append(all, fr.WriteData(id, false, bytes.Repeat([]byte("x"), 100)))
		}
	}
	return out.String(), errors.Join(all...)
}

// runProxyWait measures what a request costs a proxy while it waits for a server that does not answer.
func runProxyWait(ctx context.Context, args []string, out, log io.Writer) error {
	c := common{needs: rival.Proxy, server: proxyServer}
	f := flag.NewFlagSet("proxywait", flag.ContinueOnError)
	c.register(f, everyone)
	n := f.Int("connections", 4000, "how many requests wait")
	upload := f.Bool("upload", false, "they wait for the rest of their bodies")
	over2 := f.Bool("h2", false, "over HTTP/2 with TLS, 100 on each connection")
	if err := parse(f, args); err != nil {
		return err
	}
	request, each := waitingHead, 1
	if *upload {
		request = waitingUpload
	}
	if *over2 {
		each = waitingStreams
		c.needs |= rival.H2
		var err error
		if request, err = waitingHTTP2(*upload); err != nil {
			return err
		}
	}
	if err := installed("taskset"); err != nil {
		return err
	}
	seats, err := c.seats(-1)
	if err != nil {
		return err
	}
	limit, err := load.RaiseFiles(2**n + spareFiles) // the clients' and the origin's
	if err != nil {
		return err
	}
	count, message := clamp(*n, 2, limit)
	if message != "" {
		fmt.Fprintln(log, message)
	}
	specs, dir, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	count -= count % each
	const title = "proxywait: %d requests of %d bytes that wait for a server which does not answer\n"
	fmt.Fprintf(out, title, count, len(request)/each)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "server\tRSS before\tRSS with them\tKiB a request\tprocessor, of each\t")
	for _, spec := range specs {
		fmt.Fprintln(log, spec.Name)
		w, err := waitAt(ctx, spec, seats.Server, count, each, request)
		if err != nil {
			return fmt.Errorf("%s: %w", spec.Name, err)
		}
		fmt.Fprintf(table, "%s\t%.1f MiB\t%.1f MiB\t%.2f\t%.1f us\t\n", spec.Name, mib(w.before), mib(w.with),
			float64(w.with-w.before)/1024/float64(count), float64(w.cpu.Microseconds())/float64(count))
	}
	return table.Flush()
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// waits is what requests that wait cost a server.
type waits struct {
	before, with int64 // resident bytes
	cpu          time.Duration
}

// waitAt has n requests wait at a proxy, of which request is as many as one connection has. With more than one that
// speaks TLS. The sockets of both sides are the kernel's and do not count.
func waitAt(ctx context.Context, spec rival.Spec, cores []int, n, each int, request string) (w waits, err error) {
	o, err := newSilent()
	if err != nil {
		return w, err
	}
	defer o.close()
	s, err := rival.Start(ctx, spec, rival.Room{Cores: cores, Connections: n, Origin: o.l.Addr().String(), TLS: each > 1})
	if err != nil {
		return w, err
	}
	defer s.Stop()
	if w.before, err = measure.ResidentTree(s.PID()); err != nil {
		return w, err
	}
	began, err := measure.Tree(s.PID())
	if err != nil {
		return w, err
	}
	conns := make([]net.Conn, 0, n)
	defer func() {
		for _, nc := range conns {
			nc.(*net.TCPConn).SetLinger(0)
			nc.Close()
		}
	}()
	to := s.Addr
	if each > 1 {
		to = s.TLS
	}
	for range n / each {
		nc, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", to)
		if err != nil {
			return w, err
		}
		conns = append(conns, nc)
		if each > 1 {
			nc = tls.Client(nc, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
			go io.Copy(io.Discard, nc) // it ends with the connection
		}
		if _, err := io.WriteString(nc, request); err != nil {
			return w, err
		}
	}
	for o.asked.Load() < int64(n) {
		select {
		case <-ctx.Done():
			return w, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
		if err := s.Ended(); err != nil {
			return w, err
		}
	}
	ended, err := measure.Tree(s.PID())
	if err != nil {
		return w, err
	}
	cpu := ended.Sub(began)
	w.cpu = cpu.User + cpu.System
	w.with, err = measure.ResidentTree(s.PID())
	return w, err
}

// silent is a server that answers "/", which the lab asks for first, and nothing else.
type silent struct {
	l     net.Listener
	asked atomic.Int64
	mu    sync.Mutex
	conns []net.Conn
}

func newSilent() (*silent, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	o := &silent{l: l}
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			o.mu.Lock()
			o.conns = append(o.conns, nc)
			o.mu.Unlock()
			go o.serve(nc)
		}
	}()
	return o, nil
}

func (o *silent) serve(nc net.Conn) {
	b := make([]byte, 4096)
	for {
		n, err := nc.Read(b)
		if err != nil {
			return
		}
		if _, target, _ := strings.Cut(string(b[:n]), " "); !strings.HasPrefix(target, "/wait ") {
			io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			continue
		}
		o.asked.Add(1)
		io.Copy(io.Discard, nc)
		return
	}
}

func (o *silent) close() {
	o.l.Close()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, nc := range o.conns {
		nc.Close()
	}
}
