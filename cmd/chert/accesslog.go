package main

import (
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"time"
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

// logged writes a line to l for each request when its handler is done. The query is left out: it may hold secrets.
func logged(l *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		path := r.URL.Path // read now: the handler may change it
		lw := &logWriter{ResponseWriter: w}
		// Deferred, so that a request whose handler panics is seen too.
		defer func() {
			l.LogAttrs(r.Context(), slog.LevelInfo, "request",
				slog.String("method", r.Method),
				slog.String("path", path),
				slog.Int("status", lw.status),
				slog.Int64("bytes", lw.bytes),
				// Seconds: slog writes a Duration as bare nanoseconds in JSON and with a unit in text.
				slog.Float64("duration", time.Since(start).Seconds()),
				slog.String("remote", r.RemoteAddr),
			)
		}()
		next.ServeHTTP(lw, r)
		lw.begun() // a handler that writes nothing sends 200 as well
	})
}

// logWriter counts what goes through it. Like any ResponseWriter it belongs to one handler.
//
// Flush, Hijack and deadlines are reached by http.ResponseController through Unwrap. ReadFrom is here because
// io.Copy asks only the writer it is given, and without it a file would be copied through user space.
type logWriter struct {
	http.ResponseWriter
	status int   // 0 until a final status is written; stays 0 when a panic came first
	bytes  int64 // of the body
}

func (w *logWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *logWriter) WriteHeader(status int) {
	// The first final status counts. 1xx may come before it, except 101, which is final.
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *logWriter) Write(p []byte) (int, error) {
	w.begun()
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

func (w *logWriter) ReadFrom(r io.Reader) (int64, error) {
	w.begun()
	n, err := io.Copy(w.ResponseWriter, r)
	w.bytes += n
	return n, err
}

// begun records the status that net/http sends when the handler named none.
func (w *logWriter) begun() {
	if w.status == 0 {
		w.status = http.StatusOK
	}
}
