package http3_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	chert3 "github.com/chert-http/chert/http3"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/static"
)

// curls returns programs curl that speak HTTP/3: those of CHERT_CURL3, a list as PATH, which .ci/curl3
// makes, or the system's. Debian 12 has none.
func curls(t *testing.T) (list []curl) {
	t.Helper()
	for _, name := range filepath.SplitList(os.Getenv("CHERT_CURL3")) {
		version, err := versionOf(t, name)
		if err != nil || !strings.Contains(version, " HTTP3") {
			t.Fatalf("CHERT_CURL3: %s: %v; %s", name, err, version)
		}
		list = append(list, curl{name, version})
	}
	if list != nil {
		return list
	}
	version, err := versionOf(t, "curl")
	if err != nil && os.Getenv("CHERT_REQUIRE_ALL") == "1" {
		t.Fatal("curl is not installed; the Debian package is curl")
	}
	if !strings.Contains(version, " HTTP3") {
		t.Skip("there is no curl with HTTP/3; CHERT_CURL3=$(.ci/curl3 FOLDER) has some")
	}
	return []curl{{"curl", version}}
}

// curl is a program and what its --version prints.
type curl struct{ name, version string }

func versionOf(t *testing.T, name string) (string, error) {
	out, err := exec.CommandContext(t.Context(), name, "--version").Output()
	return string(out), err
}

// curlHandler answers curl.
func curlHandler(t *testing.T) http.Handler {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "digits"), []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := static.New(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/digits", files)
	mux.HandleFunc("/hello", hello)
	mux.HandleFunc("/body", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%s %d of %d, %v", r.Method, n, r.ContentLength, err)
	})
	mux.HandleFunc("/refused", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) })
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) { w.Write(servertest.Pattern(5_000_000)) })
	mux.HandleFunc("/close", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		fmt.Fprintf(w, "resumed %v ", r.TLS.DidResume)
	})
	mux.HandleFunc("/hints", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a>")
		w.WriteHeader(http.StatusEarlyHints)
		io.WriteString(w, "hello")
	})
	mux.HandleFunc("/trailers", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-End")
		io.WriteString(w, "hello")
		w.(http.Flusher).Flush()
		w.Header().Set("X-End", "a")
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Write(make([]byte, 100_000))
		panic(http.ErrAbortHandler)
	})
	return mux
}

// Other implementations get their answers.
func TestCurl(t *testing.T) {
	t.Parallel()
	addr := startWith(t, curlHandler(t), chert3.New(nil))
	megabyte := strings.Repeat("x", 1_000_000)
	for i, curl := range curls(t) {
		for _, tt := range []struct {
			name  string
			args  string // URL is the server's
			stdin string
			want  []string // parts of what is printed, in this order
			only  string   // the QUIC of the programs that can do it
		}{
			{"GET", "URL/hello", "", []string{"hello<3,200>"}, ""},
			{"one connection", "-w <%{num_connects}> URL/hello URL/hello URL/hello", "", []string{"hello<1>hello<0>hello<0>"}, ""},
			{"404", "URL/none", "", []string{"404 page not found\n<3,404>"}, ""},
			{"HEAD", "-I URL/hello", "", []string{"HTTP/3 200", "content-length: 5\r\n", "\r\n\r\n<3,200>"}, ""},
			{"POST", "--data-binary @- URL/body", megabyte, []string{"POST 1000000 of 1000000, <nil><3,200>"}, ""},
			{"POST without a length", "-X POST -T - URL/body", megabyte, []string{"POST 1000000 of -1, <nil><3,200>"}, ""},
			{"PUT of nothing", "-X PUT -d @- URL/body", "", []string{"PUT 0 of 0, <nil><3,200>"}, ""},
			{"POST that is not read", "--data-binary @- URL/refused", megabyte, []string{"no\n<3,403>"}, "ngtcp2"},
			{"large", "-o /dev/null -w <%{http_version},%{size_download}> URL/large", "", []string{"<3,5000000>"}, ""},
			{"60 at a time", "-Z --parallel-max 60 -w <> URL/hello?[1-60]", "", nil, ""},
			{"range", "-i -r 2-4 URL/digits", "", []string{"HTTP/3 206", "content-range: bytes 2-4/10\r\n", "\r\n\r\n234<3,206>"}, ""},
			{"range beyond", "-r 20- URL/digits", "", []string{"<3,416>"}, ""},
			{"condition", "-H If-None-Match:* URL/digits", "", []string{"<3,304>"}, ""},
			{"hints", "-i URL/hints", "", []string{"HTTP/3 103", "link: </a>\r\n", "HTTP/3 200", "\r\n\r\nhello<3,200>"}, ""},
			{"trailers", "-i URL/trailers", "", []string{"trailer: X-End\r\n", "\r\n\r\nhello", "x-end: a\r\n", "<3,200>"}, ""},
			{"cut", "-S -o /dev/null URL/cut", "", []string{"curl: ("}, ""},
			{"connections", "URL/close URL/close", "", []string{"resumed false <3,200>resumed true <3,200>"}, "ngtcp2"},
		} {
			// With OpenSSL's QUIC, curl 8.14 keeps no sessions, and fails when it is asked to send no more.
			if !strings.Contains(curl.version, tt.only) {
				continue
			}
			t.Run(strconv.Itoa(i)+" "+tt.name, func(t *testing.T) {
				t.Parallel()
				args := strings.ReplaceAll("--http3-only -w <%{http_version},%{http_code}> "+tt.args, "URL", "https://"+addr)
				got := curl.run(t, tt.stdin, strings.Fields(args)...)
				if tt.want == nil && strings.Count(got, "hello") != 60 {
					t.Errorf("%.1000q", got)
				}
				rest, ok := got, true
				for _, part := range tt.want {
					if _, rest, ok = strings.Cut(rest, part); !ok {
						t.Fatalf("%.1000q has no %q", got, part)
					}
				}
			})
		}
		t.Run(strconv.Itoa(i)+" Alt-Svc", func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "alt-svc")
			for _, version := range []string{"2", "3"} {
				got := curl.run(t, "", "-w", "<%{http_version}>", "--alt-svc", file, "https://"+addr+"/hello")
				if want := "hello<" + version + ">"; got != want {
					t.Fatalf("%q, want %q", got, want)
				}
			}
		})
	}
}

// run returns what curl prints.
func (c curl) run(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), servertest.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.name, append([]string{"-q", "-sk"}, args...)...) // without a file of the user's
	cmd.Stdin = strings.NewReader(stdin)
	out, _ := cmd.CombinedOutput() // its code is that of some HTTP errors
	return string(out)
}
