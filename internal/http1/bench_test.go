package http1

import (
	"bufio"
	"bytes"
	"net/http"
	"testing"
)

const browserGET = "GET /static/app/main.css?v=20260101 HTTP/1.1\r\n" +
	"Host: www.example.com\r\n" +
	"Connection: keep-alive\r\n" +
	"sec-ch-ua: \"Chromium\";v=\"130\", \"Not?A_Brand\";v=\"99\"\r\n" +
	"sec-ch-ua-mobile: ?0\r\n" +
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36\r\n" +
	"Accept: text/css,*/*;q=0.1\r\n" +
	"Sec-Fetch-Site: same-origin\r\n" +
	"Sec-Fetch-Mode: no-cors\r\n" +
	"Sec-Fetch-Dest: style\r\n" +
	"Referer: https://www.example.com/products/list?page=2\r\n" +
	"Accept-Encoding: gzip, deflate, br, zstd\r\n" +
	"Accept-Language: en-GB,en;q=0.9\r\n" +
	"Cookie: session=4f8a1c9e2b7d4c6f; theme=dark\r\n\r\n"

func BenchmarkParseBrowserGET(b *testing.B) {
	in := []byte(browserGET)
	var r Request
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		if n, err := r.Parse(in, nil, nil); n != len(in) || err != nil {
			b.Fatal(n, err)
		}
	}
}

func BenchmarkReadRequest(b *testing.B) {
	in := []byte(browserGET)
	rd := bytes.NewReader(in)
	br := bufio.NewReader(rd)
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		rd.Reset(in)
		br.Reset(rd)
		if _, err := http.ReadRequest(br); err != nil {
			b.Fatal(err)
		}
	}
}

// What an application server sends.
const appResponse = "HTTP/1.1 200 OK\r\n" +
	"Server: gunicorn\r\n" +
	"Date: Thu, 26 Nov 2026 12:00:00 GMT\r\n" +
	"Content-Type: application/json; charset=utf-8\r\n" +
	"Cache-Control: private, max-age=0\r\n" +
	"Vary: Accept-Encoding, Cookie\r\n" +
	"Set-Cookie: session=4f8a1c9e2b7d4c6f; Path=/; HttpOnly; SameSite=Lax\r\n" +
	"X-Runtime: 0.004511\r\n" +
	"Connection: keep-alive\r\n" +
	"Keep-Alive: timeout=5\r\n" +
	"Transfer-Encoding: chunked\r\n\r\n"

func BenchmarkParseResponse(b *testing.B) {
	in := []byte(appResponse)
	var r Response
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		if n, err := r.Parse(in, &Expected{}, nil, nil); n != len(in) || err != nil {
			b.Fatal(n, err)
		}
	}
}

func BenchmarkReadResponse(b *testing.B) {
	in := []byte(appResponse)
	rd := bytes.NewReader(in)
	br := bufio.NewReader(rd)
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		rd.Reset(in)
		br.Reset(rd)
		if _, err := http.ReadResponse(br, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseSmallGET(b *testing.B) {
	in := []byte("GET / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n")
	var r Request
	b.ReportAllocs()
	for b.Loop() {
		if n, err := r.Parse(in, nil, nil); n != len(in) || err != nil {
			b.Fatal(n, err)
		}
	}
}

// A head that comes one byte at a time, per head.
func BenchmarkParseByteByByte(b *testing.B) {
	in := []byte(browserGET)
	var r Request
	b.ReportAllocs()
	for b.Loop() {
		var p Progress
		for i := 1; i <= len(in); i++ {
			if _, err := r.Parse(in[:i], &p, nil); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkDecodeSmallChunks(b *testing.B) {
	in := bytes.Repeat([]byte("10\r\n0123456789abcdef\r\n"), 100)
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	dst := make([]byte, len(in))
	for b.Loop() {
		var c Chunked
		if _, _, _, err := c.Decode(dst, in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeLargeChunk(b *testing.B) {
	in := append(AppendChunkSize(nil, 1<<20), make([]byte, 1<<20)...)
	in = append(in, "\r\n"...)
	dst := make([]byte, 32<<10)
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		var c Chunked
		for src := in; len(src) > 0; {
			_, n, _, _ := c.Decode(dst, src)
			src = src[n:]
		}
	}
}
