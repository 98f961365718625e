package behave

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestReadFrom(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	content := servertest.Pattern(size)
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		for _, tt := range []struct {
			why, request   string
			offset, limit  int64 // limit < 0: the file itself
			length, before string
			n              int64
			want           []byte
		}{
			{"a file without a length", "GET / HTTP/1.1", 0, -1, "", "", size, content},
			{"a file with its length", "GET / HTTP/1.1", 0, -1, "1048576", "", size, content},
			{"a file to 1.0", "GET / HTTP/1.0", 0, -1, "", "", size, content},
			{"a file to HEAD", "HEAD / HTTP/1.1", 0, -1, "1048576", "", size, nil},
			{"from an offset", "GET / HTTP/1.1", 1000, -1, "1047576", "", size - 1000, content[1000:]},
			{"limited", "GET / HTTP/1.1", 1000, 5000, "5000", "", 5000, content[1000:6000]},
			{"limited without a length", "GET / HTTP/1.1", 0, 5000, "", "", 5000, content[:5000]},
			{"much from an offset, limited", "GET / HTTP/1.1", 1000, 100_000, "100000", "", 100_000, content[1000:101_000]},
			{"limited to less than is sniffed", "GET / HTTP/1.1", 0, 100, "100", "", 100, content[:100]},
			{"limited to what is sniffed", "GET / HTTP/1.1", 0, 512, "512", "", 512, content[:512]},
			{"limited to nothing", "GET / HTTP/1.1", 0, 0, "0", "", 0, nil},
			{"the end of a file", "GET / HTTP/1.1", size, -1, "0", "", 0, nil},
			{"a limit beyond the end", "GET / HTTP/1.1", size - 10, 100, "10", "", 10, content[size-10:]},
			{"much behind a write", "GET / HTTP/1.1", 0, -1, "1048579", "abc", size, append([]byte("abc"), content...)},
			{"behind a write", "GET / HTTP/1.1", 0, 5000, "5003", "abc", 5000, append([]byte("abc"), content[:5000]...)},
		} {
			type result struct {
				n, offset, left int64
				err             error
			}
			done := make(chan result, 1)
			ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				f, err := os.Open(name)
				if err != nil {
					t.Error(err)
					return
				}
				defer f.Close()
				f.Seek(tt.offset, io.SeekStart)
				if tt.length != "" {
					w.Header().Set("Content-Length", tt.length)
				}
				put(w, tt.before)
				var res result
				if tt.limit < 0 {
					res.n, res.err = io.Copy(w, f)
				} else {
					lim := &io.LimitedReader{R: f, N: tt.limit}
					res.n, res.err = w.(io.ReaderFrom).ReadFrom(lim)
					res.left = lim.N
				}
				res.offset, _ = f.Seek(0, io.SeekCurrent)
				done <- res
			})})
			c := ts.Dial()
			c.Send(tt.request + "\r\nHost: h\r\n\r\n")
			if _, body := c.Response(tt.request[:strings.IndexByte(tt.request, ' ')]); body != string(tt.want) {
				t.Errorf("%s: body is %s", tt.why, servertest.Brief(body))
			}
			res := servertest.Await(t, done, "the handler")
			want := result{n: tt.n, offset: tt.offset + tt.n}
			if tt.limit >= 0 {
				want.left = tt.limit - tt.n
			}
			if res != want {
				t.Errorf("%s: got %+v, want %+v", tt.why, res, want)
			}
		}
	})
}

// countedFile counts the bytes that are read from a file and not sent by
// sendfile.
type countedFile struct {
	*os.File
	read *int
}

func (f countedFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	*f.read += n
	return n, err
}

// With sendfile the server does not read the file.
func TestReadFromMoves(t *testing.T) {
	t.Parallel()
	if !sys.HaveSendfile {
		t.Skip("needs sendfile")
	}
	content := servertest.Pattern(1 << 20)
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		for _, tt := range []struct {
			why           string
			offset, limit int
			declared      bool
			read          int
		}{
			{"all", 0, 1 << 20, true, 512},
			{"from an offset", 1000, 1 << 19, true, 512},
			{unlike + "little, which goes with the head in one write", 1000, 10_000, true, 10_000},
			{"chunked", 0, 1 << 20, false, 1 << 20},
		} {
			if e == engines.NetHTTP && strings.HasPrefix(tt.why, unlike) {
				continue
			}
			read := make(chan int, 1)
			ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				f, err := os.Open(name)
				if err != nil {
					t.Error(err)
					return
				}
				defer f.Close()
				f.Seek(int64(tt.offset), io.SeekStart)
				if tt.declared {
					w.Header().Set("Content-Length", strconv.Itoa(tt.limit))
				}
				n := 0
				io.CopyN(w, countedFile{f, &n}, int64(tt.limit))
				read <- n
			})})
			if _, body := ts.Dial().Get("/"); body != string(content[tt.offset:][:tt.limit]) {
				t.Errorf("%s: body is %s", tt.why, servertest.Brief(body))
			}
			if n := servertest.Await(t, read, "the handler"); n != tt.read {
				t.Errorf("%s: %d bytes were read, want %d", tt.why, n, tt.read)
			}
		}
	})
}

// More of a file than was announced must not become part of the next response.
func TestReadFromTooMuch(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, servertest.Pattern(200_000), 0o600); err != nil {
		t.Fatal(err)
	}
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		for _, length := range []int{1000, 100_000} {
			ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				f, err := os.Open(name)
				if err != nil {
					t.Error(err)
					return
				}
				defer f.Close()
				w.Header().Set("Content-Length", strconv.Itoa(length))
				if n, err := w.(io.ReaderFrom).ReadFrom(f); n != int64(length) || err != nil {
					t.Errorf("ReadFrom gave %d, %v", n, err)
				}
			})})
			c := ts.Dial()
			c.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
			c.Head()
			c.Want(string(servertest.Pattern(length)))
			c.CloseWrite()
			if rest := c.UpToEnd(); rest != "" {
				t.Errorf("then came %s", servertest.Brief(rest))
			}
		}
	})
}

func TestReadFromPipe(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			pr, pw, err := os.Pipe()
			if err != nil {
				t.Error(err)
				return
			}
			defer pr.Close()
			go func() {
				defer pw.Close()
				pw.Write(servertest.Pattern(300_000))
			}()
			if n, err := io.Copy(w, pr); n != 300_000 || err != nil {
				t.Errorf("Copy gave %d, %v", n, err)
			}
		})})
		c := ts.Dial()
		for range 2 {
			if _, body := c.Get("/"); body != string(servertest.Pattern(300_000)) {
				t.Errorf("got %s", servertest.Brief(body))
			}
		}
	})
}

// TestServeContent compares ranges and conditions with net/http, byte by byte.
func TestServeContent(t *testing.T) {
	t.Parallel()
	content := servertest.Pattern(10_000)
	handler := hf(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"e"`)
		http.ServeContent(w, r, "a.txt", time.Unix(1e9, 0), bytes.NewReader(content))
	})
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ours, theirs := engines.Start(t, &chert.Server{Engine: e, Handler: handler}), engines.Start(t, &chert.Server{Engine: engines.NetHTTP, Handler: handler})
		for _, lines := range []string{
			"", "Range: bytes=0-0\r\n", "Range: bytes=0-\r\n", "Range: bytes=-1\r\n", "Range: bytes=100-6000\r\n",
			"Range: bytes=9999-\r\n", "Range: bytes=10000-\r\n", "Range: bytes=0-99999\r\n", "Range: bytes=5-1\r\n", "Range: lines=1-2\r\n",
			"If-None-Match: \"e\"\r\n", "If-None-Match: \"f\"\r\n", "If-Match: \"f\"\r\n", "If-Range: \"e\"\r\nRange: bytes=1-2\r\n",
			"If-Range: \"f\"\r\nRange: bytes=1-2\r\n", "If-Modified-Since: Sun, 09 Sep 2001 01:46:40 GMT\r\n",
			"If-Modified-Since: Sun, 09 Sep 2001 01:46:39 GMT\r\n", "If-Unmodified-Since: Sun, 09 Sep 2001 01:46:39 GMT\r\n",
		} {
			for _, method := range []string{"GET", "HEAD"} {
				req := method + " / HTTP/1.1\r\nHost: h\r\n" + lines + "\r\n" + tail
				if got, want := servertest.Undated(ours.Exchange(req, false)), servertest.Undated(theirs.Exchange(req, false)); got != want {
					t.Errorf("%s %q:\ngot  %s\nwant %s", method, lines, servertest.Brief(got), servertest.Brief(want))
				}
			}
		}
	})
}
