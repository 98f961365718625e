package main

import (
	"errors"
	"io"
	"log"
	"log/slog"
	"net/http"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/middleware"
)

// logFormat is the value of --log.
type logFormat string

const (
	logOff      logFormat = "off"
	logCommon   logFormat = "common"
	logCombined logFormat = "combined"
	logVhost    logFormat = "vhost"
	logText     logFormat = "text"
	logJSON     logFormat = "json"
)

// logNames is the list of them for people.
const logNames = "off, common, combined, vhost, text or json"

// logFormats are all that are written.
var logFormats = map[logFormat]middleware.LogFormat{
	logCommon: middleware.LogCommon, logCombined: middleware.LogCombined, logVhost: middleware.LogVhostCombined,
	logText: middleware.LogText, logJSON: middleware.LogJSON,
}

// logWords are for the completion of shells.
var logWords = []string{
	"off\tno access log",
	"common\tthe Common Log Format",
	"combined\tthe same with Referer and User-Agent",
	"vhost\tcombined after the host and the port",
	"text\tkey=value lines",
	"json\tone object a line",
}

func (f *logFormat) String() string { return string(*f) }

// Type is the word that stands for the value in the help.
func (f *logFormat) Type() string { return "format" }

func (f *logFormat) Set(s string) error {
	v := logFormat(s)
	if _, ok := logFormats[v]; !ok && v != logOff {
		return errors.New("want " + logNames)
	}
	*f = v
	return nil
}

// access is a log of requests to w, nil for none. Each line is one Write at once: lines gathers them. So it need not
// be closed.
func (f logFormat) access(w io.Writer) *middleware.AccessLog {
	if f == logOff {
		return nil
	}
	return middleware.NewAccessLog(&middleware.AccessLogOptions{Format: logFormats[f], Output: w, Buffer: -1})
}

// errors is what the server reports its errors through. They have the format of the access log if that has one for
// them, so that one parser can read all of stderr while the server runs. Those of web servers have none.
func (f logFormat) errors(w io.Writer) *log.Logger {
	var h slog.Handler
	switch f {
	case logText:
		h = slog.NewTextHandler(w, nil)
	case logJSON:
		h = slog.NewJSONHandler(w, nil)
	default:
		return log.New(w, "chert: ", 0)
	}
	return slog.NewLogLogger(h, slog.LevelError)
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
