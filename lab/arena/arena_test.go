package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	mrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/lab/arena/sumpb"

	"github.com/chert-http/chert"
)

// dataset writes fifty items and returns the file.
func dataset(t *testing.T) string {
	t.Helper()
	var items []item
	for i := range 50 {
		items = append(items, item{ID: i + 1, Name: fmt.Sprintf("Item %d", i+1), Category: "tools", Price: 10 + 7*i, Quantity: 1 + i%9, Active: i%2 == 0,
			Tags: []string{"fast", "new"}, Rating: rating{i, 2 * i}})
	}
	b, err := json.Marshal(items)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "dataset.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serve starts the endpoints on chert and returns the address.
func serve(t *testing.T, s settings) string {
	t.Helper()
	a, err := newApp(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	server := &chert.Server{Handler: a.handler}
	l, err := server.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Close()
		<-ended
		a.close()
	})
	return l.Addr().String()
}

// do sends a request and returns the response with its body.
func do(t *testing.T, method, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

func TestBaseline(t *testing.T) {
	t.Parallel()
	addr := serve(t, settings{})
	a, b := 100+mrand.IntN(900), 100+mrand.IntN(900)
	query := fmt.Sprintf("http://%s/baseline11?a=%d&b=%d", addr, a, b)
	resp, body := do(t, "GET", query, "")
	if body != strconv.Itoa(a+b) || resp.Header.Get("Content-Type") != "text/plain" {
		t.Errorf("%d + %d = %q, %v", a, b, body, resp.Header)
	}
	if _, body := do(t, "GET", fmt.Sprintf("http://%s/baseline2?a=1&b=1", addr), ""); body != "2" {
		t.Errorf("baseline2: %q", body)
	}
	for range 2 {
		n := mrand.IntN(1000)
		if _, body := do(t, "POST", query, strconv.Itoa(n), "Content-Type", "text/plain"); body != strconv.Itoa(a+b+n) {
			t.Errorf("with %d: %q", n, body)
		}
	}
	if resp, _ := do(t, "POST", query, "many"); resp.StatusCode != 400 {
		t.Errorf("a body that is no number: %s", resp.Status)
	}
	if resp, _ := do(t, "POST", query, strings.Repeat("1", 100)); resp.StatusCode != 400 {
		t.Errorf("a long body: %s", resp.Status)
	}
}

// Requests arrive in the pieces that the benchmark's validation sends.
func TestPieces(t *testing.T) {
	t.Parallel()
	addr := serve(t, settings{})
	const post = "POST /baseline11?a=13&b=42 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
	tests := []struct {
		name   string
		pieces []string
		want   string
	}{
		{"request line", []string{"GET /baseli", "ne11?a=13&b=42 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"}, "55"},
		{"fields", []string{"GET /baseline11?a=13&b=42 HTTP/1.1\r\n", "Host: x\r\n", "Connection: close\r\n", "\r\n"}, "55"},
		{"head and body", []string{post + "Content-Length: 2\r\n\r\n", "20"}, "75"},
		{"body", []string{post + "Content-Length: 2\r\n\r\n", "2", "0"}, "75"},
		{"chunked", []string{post + "Transfer-Encoding: chunked\r\n\r\n2\r", "\n20\r\n0\r\n\r\n"}, "75"},
	}
	for _, tt := range tests {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(90 * time.Second))
		for _, piece := range tt.pieces {
			if _, err := io.WriteString(c, piece); err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Millisecond) // as the validation does: the pieces must not arrive as one
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || string(body) != tt.want || !resp.Close {
			t.Errorf("%s: %q, %v, closing %t, want %q", tt.name, body, err, resp.Close, tt.want)
		}
		c.Close()
	}
}

func TestPipelined(t *testing.T) {
	t.Parallel()
	c, err := net.Dial("tcp", serve(t, settings{}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(90 * time.Second))
	if _, err := io.WriteString(c, strings.Repeat("GET /pipeline HTTP/1.1\r\nHost: x\r\n\r\n", 16)); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	for range 16 {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "ok" {
			t.Errorf("%q, %v", body, err)
		}
	}
}

type totals struct {
	Items []struct {
		item
		Total int `json:"total"`
	} `json:"items"`
	Count int `json:"count"`
}

func checkTotals(t *testing.T, text string, count, m int) {
	t.Helper()
	var got totals
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v: %.200s", err, text)
	}
	if got.Count != count || len(got.Items) != count {
		t.Errorf("count %d, %d items, want %d", got.Count, len(got.Items), count)
	}
	for _, i := range got.Items {
		if i.Total != i.Price*i.Quantity*m || i.Rating.Count != 2*i.Rating.Score || len(i.Tags) != 2 {
			t.Errorf("%+v", i)
		}
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	addr := serve(t, settings{dataset: dataset(t)})
	for _, tt := range []struct{ count, m int }{{12, 1}, {22, 3}, {31, 7}, {50, 2}} {
		resp, body := do(t, "GET", fmt.Sprintf("http://%s/json/%d?m=%d", addr, tt.count, tt.m), "")
		if resp.Header.Get("Content-Type") != "application/json" || resp.Header.Get("Content-Encoding") != "" {
			t.Errorf("%v", resp.Header)
		}
		checkTotals(t, body, tt.count, tt.m)
	}
	if resp, _ := do(t, "GET", "http://"+addr+"/json/many", ""); resp.StatusCode != 400 {
		t.Errorf("no number: %s", resp.Status)
	}
	for _, accept := range []string{"gzip, br", "gzip"} {
		resp, body := do(t, "GET", "http://"+addr+"/json/40?m=7", "", "Accept-Encoding", accept)
		coding := resp.Header.Get("Content-Encoding")
		if coding != "br" && coding != "gzip" {
			t.Errorf("%s: Content-Encoding %q", accept, coding)
		}
		if coding == "gzip" {
			z, err := gzip.NewReader(strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			plain, err := io.ReadAll(z)
			if err != nil {
				t.Fatal(err)
			}
			checkTotals(t, string(plain), 40, 7)
		}
	}
}

func TestUpload(t *testing.T) {
	t.Parallel()
	addr := serve(t, settings{})
	for _, size := range []int{0, 1, 500 << 10, 20 << 20} {
		if _, body := do(t, "POST", "http://"+addr+"/upload", strings.Repeat("x", size), "Content-Type", "application/octet-stream"); body != strconv.Itoa(size) {
			t.Errorf("%d bytes: %q", size, body)
		}
	}
}

func TestStatic(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	css := strings.Repeat("body { color: black }\n", 1000)
	for name, content := range map[string]string{"reset.css": css, "app.js": css, "manifest.json": "{}", "hero.webp": "RIFF", "reset.css.br": "as brotli", "logo.svg": "<svg/>", "bold.woff2": "wOF2"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	base := "http://" + serve(t, settings{files: dir}) + "/static/"
	for name, want := range map[string][]string{"reset.css": {"text/css"}, "app.js": {"text/javascript", "application/javascript"}, "manifest.json": {"application/json"},
		"hero.webp": {"image/webp"}, "logo.svg": {"image/svg+xml"}, "bold.woff2": {"font/woff2"}} {
		resp, body := do(t, "GET", base+name, "")
		mediaType, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
		if resp.StatusCode != 200 || mediaType != want[0] && mediaType != want[len(want)-1] || resp.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %s %v", name, resp.Status, resp.Header)
		}
		if name == "reset.css" && body != css {
			t.Errorf("%d bytes of %d", len(body), len(css))
		}
	}
	resp, body := do(t, "GET", base+"reset.css", "", "Accept-Encoding", "br;q=1, gzip;q=0.8")
	if resp.Header.Get("Content-Encoding") != "br" || body != "as brotli" {
		t.Errorf("the compressed file beside it: %v", resp.Header)
	}
	if resp, _ := do(t, "GET", base+"nonexistent.txt", ""); resp.StatusCode != 404 {
		t.Errorf("a file that is not there: %s", resp.Status)
	}
	// Nothing is kept: the next request has the file as it is then.
	if err := os.WriteFile(filepath.Join(dir, "app.js"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, body := do(t, "GET", base+"app.js", ""); body != "changed" {
		t.Errorf("%d bytes of the file as it was", len(body))
	}
}

func TestWebSocket(t *testing.T) {
	t.Parallel()
	addr := serve(t, settings{})
	c, r, _, err := ws.Dial(t.Context(), "ws://"+addr+"/ws")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(90 * time.Second))
	if r != nil {
		t.Fatalf("%d bytes before a message was sent", r.Buffered())
	}
	binary := make([]byte, 256)
	if _, err := rand.Read(binary); err != nil {
		t.Fatal(err)
	}
	messages := []struct {
		op   ws.OpCode
		body []byte
	}{{ws.OpText, []byte("hello")}, {ws.OpBinary, binary}, {ws.OpText, nil}, {ws.OpText, []byte("one")}, {ws.OpText, []byte("two")}, {ws.OpText, []byte("three")}}
	for _, m := range messages {
		if err := wsutil.WriteClientMessage(c, m.op, m.body); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range messages {
		got, op, err := wsutil.ReadServerData(c)
		if err != nil || op != m.op || !bytes.Equal(got, m.body) {
			t.Errorf("%v %q, %v, want %v %q", op, got, err, m.op, m.body)
		}
	}
	if err := ws.WriteFrame(c, ws.MaskFrame(ws.NewCloseFrame(ws.NewCloseFrameBody(ws.StatusNormalClosure, "validate done")))); err != nil {
		t.Fatal(err)
	}
	h, err := ws.ReadHeader(c)
	if err != nil || h.OpCode != ws.OpClose || h.Length < 2 || h.Length > 125 {
		t.Fatalf("%+v, %v", h, err)
	}
	payload := make([]byte, h.Length)
	if _, err := io.ReadFull(c, payload); err != nil {
		t.Fatal(err)
	}
	if code, _ := ws.ParseCloseFrameData(payload); code != ws.StatusNormalClosure {
		t.Errorf("closing with %d", code)
	}
	if resp, _ := do(t, "GET", "http://"+addr+"/ws", ""); resp.StatusCode/100 != 4 {
		t.Errorf("without an upgrade: %s", resp.Status)
	}
}

// The program as it is started: all ports, and an end.
func TestRun(t *testing.T) {
	t.Parallel()
	s := settings{plain: freeport.Addr(t), secure: freeport.Addr(t), plain2: freeport.Addr(t), secure2: freeport.Addr(t), dataset: dataset(t)}
	s.certificate, s.key = certificate(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, s) }()
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}}
	var c *tls.Conn
	for end := time.Now().Add(90 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var err error
		if c, err = tls.Dial("tcp", s.secure, config); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	c.SetDeadline(time.Now().Add(90 * time.Second))
	if got := c.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("protocol %q", got)
	}
	if _, err := io.WriteString(c, "GET /json/5?m=3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	checkTotals(t, string(body), 5, 3)
	c.Close()
	if _, body := do(t, "GET", "http://"+s.plain+"/pipeline", ""); body != "ok" {
		t.Errorf("%q", body)
	}
	for url, unencrypted := range map[string]bool{"http://" + s.plain2: true, "https://" + s.secure2: false} {
		tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, Protocols: new(http.Protocols)}
		tr.Protocols.SetHTTP2(!unencrypted)
		tr.Protocols.SetUnencryptedHTTP2(unencrypted)
		resp, err := (&http.Client{Transport: tr}).Get(url + "/baseline2?a=13&b=42")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.ProtoMajor != 2 || string(body) != "55" {
			t.Errorf("%s: %s %q %v", url, resp.Proto, body, err)
		}
		tr.CloseIdleConnections()
	}
	for addr, creds := range map[string]credentials.TransportCredentials{
		s.plain:   insecure.NewCredentials(),
		s.secure2: credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}),
	} {
		checkCalls(t, addr, creds)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func checkCalls(t *testing.T, addr string, creds credentials.TransportCredentials) {
	t.Helper()
	c, err := grpc.NewClient(addr, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	client := sumpb.NewBenchmarkServiceClient(c)
	if r, err := client.GetSum(ctx, &sumpb.SumRequest{A: 13, B: 42}); err != nil || r.Result != 55 {
		t.Errorf("GetSum: %v, %v", r, err)
	}
	for count, want := range map[int32]int32{5000: 5000, 0: 1} {
		stream, err := client.StreamSum(ctx, &sumpb.StreamRequest{A: 1, B: 2, Count: count})
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if r, err := stream.Recv(); err != nil || r.Result != 3+i {
				t.Fatalf("StreamSum, reply %d: %v, %v", i, r, err)
			}
		}
		if r, err := stream.Recv(); err != io.EOF {
			t.Errorf("StreamSum, after %d: %v, %v", want, r, err)
		}
	}
}

func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "crt"), filepath.Join(dir, "key")
	for path, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// Each profile of meta.json has what it needs, and the file is what the benchmark reads.
func TestMeta(t *testing.T) {
	text, err := os.ReadFile("meta.json")
	if err != nil {
		t.Fatal(err)
	}
	var meta struct {
		Type  string   `json:"type"`
		Tests []string `json:"tests"`
	}
	if err := json.Unmarshal(text, &meta); err != nil || meta.Type != "production" || len(meta.Tests) == 0 {
		t.Errorf("%+v, %v", meta, err)
	}
}

// Without a database the benchmark wants an empty answer, not an error.
func TestNoDatabase(t *testing.T) {
	t.Parallel()
	addr := serve(t, settings{})
	if _, body := do(t, "GET", "http://"+addr+"/async-db?min=10&max=50", ""); body != `{"items":[],"count":0}` {
		t.Errorf("%q", body)
	}
	if resp, _ := do(t, "GET", "http://"+addr+"/crud/items/1", ""); resp.StatusCode != 503 {
		t.Errorf("crud: %s", resp.Status)
	}
	if _, err := newApp(t.Context(), settings{database: "postgres://localhost/x", connections: "many"}); err == nil {
		t.Error("no error for a number of connections that is none")
	}
}
