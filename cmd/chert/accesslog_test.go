package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// requestLine is what a line of the access log holds, in the formats of log/slog.
type requestLine struct {
	Time, Level, Msg                  string
	Method, Host, Path, Remote, Proto string
	Status                            int
	Bytes                             int64
	Latency                           json.RawMessage
	Referer                           string
	UserAgent                         string `json:"user_agent"`
}

// parseJSON is strict: a field this test does not know is an error.
func parseJSON(line string) (requestLine, error) {
	var r requestLine
	dec := json.NewDecoder(strings.NewReader(line))
	dec.DisallowUnknownFields()
	err := dec.Decode(&r)
	return r, err
}

// parseText parses key=value pairs whose values may be quoted as in Go, by way of JSON.
func parseText(line string) (requestLine, error) {
	fields := make(map[string]any)
	for line != "" {
		key, rest, ok := strings.Cut(line, "=")
		if !ok {
			return requestLine{}, fmt.Errorf("no = in %q", line)
		}
		value, after, _ := strings.Cut(rest, " ")
		if strings.HasPrefix(rest, `"`) {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return requestLine{}, err
			}
			value, _ = strconv.Unquote(quoted)
			after = strings.TrimPrefix(rest[len(quoted):], " ")
		}
		fields[key], line = value, after
		if key == "status" || key == "bytes" {
			fields[key] = json.Number(value)
		}
	}
	b, err := json.Marshal(fields)
	if err != nil {
		return requestLine{}, err
	}
	return parseJSON(string(b))
}

// parseCLF reads a line of the Common Log Format or, with combined, of Apache's and nginx's.
func parseCLF(line string, combined bool) (requestLine, error) {
	form := `^([0-9.]+) - - \[([^]]+)\] "(\S+) (\S+) (\S+)" (\d+) (\d+|-)`
	if combined {
		form += ` "([^"]*)" "([^"]*)"`
	}
	m := regexp.MustCompile(form + "$").FindStringSubmatch(line)
	if m == nil {
		return requestLine{}, errors.New("not of the format")
	}
	r := requestLine{Remote: m[1], Time: m[2], Method: m[3], Path: m[4], Proto: m[5]}
	r.Status, _ = strconv.Atoi(m[6])
	r.Bytes, _ = strconv.ParseInt(m[7], 10, 64)
	if _, err := time.Parse("02/Jan/2006:15:04:05 -0700", r.Time); err != nil {
		return r, err
	}
	if combined {
		r.Referer, r.UserAgent = strings.TrimPrefix(m[8], "-"), m[9]
	}
	return r, nil
}

// parseVhost reads a line of Apache's vhost_combined.
func parseVhost(line string) (requestLine, error) {
	host, rest, _ := strings.Cut(line, " ")
	r, err := parseCLF(rest, true)
	r.Host = host
	return r, err
}

// All formats have the same values for the same requests, where they have the field.
func TestLogFormats(t *testing.T) {
	needSignals(t)
	parsers := map[string]func(string) (requestLine, error){
		"json": parseJSON, "text": parseText,
		"common":   func(line string) (requestLine, error) { return parseCLF(line, false) },
		"combined": func(line string) (requestLine, error) { return parseCLF(line, true) },
		"vhost":    parseVhost,
	}
	for format, parse := range parsers {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			p := start(t, folder(t, map[string]string{"f": "12345"}), "--listen", "127.0.0.1:0", "--log", format)
			c := newClient(t, "")
			for _, r := range []struct{ method, target, referer string }{
				{"GET", "f?secret=1", "http://r.example/page?secret"}, {"GET", "a%0amsg=forged%20%22b", ""}, {"HEAD", "f", ""},
			} {
				req, err := http.NewRequestWithContext(t.Context(), r.method, p.urls[0]+r.target, nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("User-Agent", "test/1.0 (a; b)")
				if r.referer != "" {
					req.Header.Set("Referer", r.referer)
				}
				res, err := c.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
			p.signal(syscall.SIGTERM)
			p.waitFor(exitOK)

			want := []requestLine{
				{Method: "GET", Path: "/f", Status: 200, Bytes: 5, Referer: "http://r.example/page"},
				{Method: "GET", Path: "/a%0amsg=forged%20%22b", Status: 404, Bytes: 19},
				{Method: "HEAD", Path: "/f", Status: 200},
			}
			lines := strings.Split(strings.TrimSuffix(p.stderr.String(), "\n"), "\n")
			if len(lines) != len(want) {
				t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), p.stderr.String())
			}
			for i, line := range lines {
				got, err := parse(line)
				if err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				if got.Time == "" || got.Proto != "HTTP/1.1" || got.Remote != "127.0.0.1" {
					t.Errorf("%s: a common field is wrong", line)
				}
				if format == "json" || format == "text" {
					if got.Level != "INFO" || got.Msg != "request" || len(got.Latency) == 0 || "http://"+got.Host+"/" != p.urls[0] {
						t.Errorf("%s: a common field is wrong", line)
					}
				}
				if format == "vhost" && "http://"+got.Host+"/" != p.urls[0] {
					t.Errorf("%s: the host is wrong", line)
				}
				w := want[i]
				w.UserAgent = "test/1.0 (a; b)"
				if format == "common" {
					w.UserAgent, w.Referer = "", ""
				}
				got.Time, got.Level, got.Msg, got.Remote, got.Proto, got.Latency, got.Host = "", "", "", "", "", nil, ""
				if !reflect.DeepEqual(got, w) {
					t.Errorf("got  %+v\nwant %+v", got, w)
				}
			}
		})
	}
}

// Of requests that name no port the lines have that of their scheme.
func TestVhostPort(t *testing.T) {
	needSignals(t)
	t.Parallel()
	ca, dir := newCA(t), t.TempDir()
	ca.server(dir, "a", "a.example")
	file := filepath.Join(folder(t, map[string]string{"www/f": "x"}), "chert.toml")
	write(t, file, fmt.Sprintf("listen = ['127.0.0.1:0', { address = '127.0.0.1:0', tls = false }]\nlog = 'vhost'\n"+
		"[[site]]\nhosts = 'a.example'\nroot = 'www'\ntls_cert = '%[1]s/a.pem'\ntls_key = '%[1]s/a-key.pem'\n",
		filepath.ToSlash(dir)))
	p := start(t, "--config", file)
	c := mustDialTLS(t, p.urls[0], &tls.Config{RootCAs: ca.pool, ServerName: "a.example"})
	c.want("a.example", 200, "x")
	c.Close()
	getHost(t, newClient(t, ""), p.urls[1], "a.example", "f")
	p.signal(syscall.SIGTERM)
	p.waitFor(exitOK)
	lines := strings.Split(p.stderr.String(), "\n")
	slices.Sort(lines)
	if len(lines) != 3 || !strings.HasPrefix(lines[1], "a.example:443 ") || !strings.HasPrefix(lines[2], "a.example:80 ") {
		t.Errorf("%q", lines)
	}
}

// Programs that parse the formats of web servers do not take errors for requests, and those of slog stay valid.
func TestLogFormatsOfErrors(t *testing.T) {
	t.Parallel()
	for format, want := range map[logFormat]string{
		logOff: "^chert: it failed\n$", logCommon: "^chert: it failed\n$", logCombined: "^chert: it failed\n$",
		logVhost: "^chert: it failed\n$",
		logText:  `^time=\S+ level=ERROR msg="it failed"\n$`, logJSON: `^\{"time":"[^"]+","level":"ERROR","msg":"it failed"\}\n$`,
	} {
		var out bytes.Buffer
		slog.NewLogLogger(format.errors(&out), slog.LevelError).Print("it failed")
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("%s: %q", format, out.String())
		}
	}
}

// Attributes of a record are on the line of its message, whatever they contain.
func TestErrorsForPeople(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := slog.New(logOff.errors(&out)).With("site", "a.example")
	l.Error("a file cannot be served", "file", "a\nchert: b.txt", "n", 3, "error", errors.New("disk"), "none", "")
	l.Debug("not for people")
	if want := `chert: a file cannot be served site=a.example file="a\nchert: b.txt" n=3 error=disk none=""` + "\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// logged is h behind a front that logs to w, each line at once.
func logged(w io.Writer, h http.Handler) *front {
	log := newLog(w)
	log.Close()
	f := &front{}
	f.replace(newGeneration(inLog(logJSON.access(log), h), nil))
	return f
}

// logOf serves one request through h and returns its line.
func logOf(t *testing.T, w http.ResponseWriter, h http.HandlerFunc) requestLine {
	t.Helper()
	var out bytes.Buffer
	func() {
		defer func() { recover() }() // of the panics that h is about
		logged(&out, h).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	}()
	line, err := parseJSON(out.String())
	if err != nil {
		t.Fatalf("%s: %v", out.String(), err)
	}
	return line
}

// fastWriter stands for a connection that can send a file by itself.
type fastWriter struct {
	*httptest.ResponseRecorder
	from io.Reader
}

func (w *fastWriter) ReadFrom(r io.Reader) (int64, error) {
	w.from = r
	return io.Copy(w.ResponseRecorder, r)
}

func TestLogKeepsReadFrom(t *testing.T) {
	t.Parallel()
	w := &fastWriter{ResponseRecorder: httptest.NewRecorder()}
	src := io.LimitReader(strings.NewReader("0123456789"), 4)
	line := logOf(t, w, func(w http.ResponseWriter, _ *http.Request) { io.Copy(w, src) })
	if w.from != src {
		t.Error("the connection did not get the source itself")
	}
	if line.Bytes != 4 || line.Status != 200 {
		t.Errorf("%d, %d bytes", line.Status, line.Bytes)
	}
}

func TestLogKeepsFlushAndHijack(t *testing.T) {
	t.Parallel()
	flushed := make(chan struct{})
	h := http.NewServeMux()
	h.HandleFunc("/flush", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "a\n")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-flushed // the client has the first line before the handler is done
	})
	h.HandleFunc("/hijack", func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		io.WriteString(c, "HTTP/1.1 299 Mine\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		c.Close()
	})
	srv := httptest.NewServer(logged(io.Discard, h))
	defer srv.Close()
	c := newClient(t, "")
	res, err := c.Get(srv.URL + "/flush")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if line, err := bufio.NewReader(res.Body).ReadString('\n'); line != "a\n" {
		t.Errorf("%q %v", line, err)
	}
	close(flushed)
	if status, _ := get(t, c, srv.URL+"/hijack"); status != 299 {
		t.Errorf("status %d", status)
	}
}
