package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"time"

	"github.com/chert-http/chert/direct"
)

// logFormat is the value of --log.
type logFormat string

const (
	logOff  logFormat = "off"
	logText logFormat = "text"
	logJSON logFormat = "json"
)

func (f *logFormat) String() string { return string(*f) }

// Type is the word that stands for the value in the help.
func (f *logFormat) Type() string { return "format" }

func (f *logFormat) Set(s string) error {
	switch v := logFormat(s); v {
	case logOff, logText, logJSON:
		*f = v
		return nil
	}
	return fmt.Errorf("want off, text or json")
}

// loggers returns what the access log goes through, nil for none, and what the server reports its errors through.
// Errors keep the format of the access log, so that one parser can read all of stderr while the server runs.
func loggers(f logFormat, w io.Writer) (access *slog.Logger, errs *log.Logger) {
	var h slog.Handler
	switch f {
	case logText:
		h = slog.NewTextHandler(w, nil)
	case logJSON:
		h = slog.NewJSONHandler(w, nil)
	default:
		return nil, log.New(w, "chert: ", 0)
	}
	return slog.New(h), slog.NewLogLogger(h, slog.LevelError)
}

// logRequest writes a line for a request. host is as the client wrote it: with many sites it tells them apart. The
// query is left out: it may hold secrets.
func logRequest(l *slog.Logger, method, host, path string, status int, bytes int64, took time.Duration, remote string) {
	l.LogAttrs(context.Background(), slog.LevelInfo, "request",
		slog.String("method", method),
		slog.String("host", host),
		slog.String("path", path),
		slog.Int("status", status),
		slog.Int64("bytes", bytes),
		// Seconds: slog writes a Duration as bare nanoseconds in JSON and with a unit in text.
		slog.Float64("duration", took.Seconds()),
		slog.String("remote", remote),
	)
}

// countWriter counts what goes through it. Like any ResponseWriter it belongs to one handler.
//
// Flush, Hijack and deadlines are reached by http.ResponseController through Unwrap. ReadFrom and SendFile are here
// because who looks for them asks only the writer it is given, and without them a file would be copied through user
// space.
type countWriter struct {
	http.ResponseWriter
	status int   // 0 until a final status is written; stays 0 when a panic came first
	bytes  int64 // of the body
}

func (w *countWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *countWriter) WriteHeader(status int) {
	// The first final status counts. 1xx may come before it, except 101, which is final.
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *countWriter) Write(p []byte) (int, error) {
	w.begun()
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

func (w *countWriter) ReadFrom(r io.Reader) (int64, error) {
	w.begun()
	n, err := io.Copy(w.ResponseWriter, r)
	w.bytes += n
	return n, err
}

// SendFile implements direct.FileSender. What was sent of a file before an error is not known.
func (w *countWriter) SendFile(f direct.File) error {
	w.begun()
	err := direct.SendFile(w.ResponseWriter, f)
	if err == nil {
		w.bytes += f.Len
	}
	return err
}

// begun records the status that net/http sends when the handler named none.
func (w *countWriter) begun() {
	if w.status == 0 {
		w.status = http.StatusOK
	}
}
