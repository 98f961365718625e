package main

import (
	"errors"
	"io"
	"log"
	"log/slog"
	"time"

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

// logNames lists the formats in messages.
const logNames = "off, common, combined, vhost, text or json"

// logFormats are the formats that log anything.
var logFormats = map[logFormat]middleware.LogFormat{
	logCommon: middleware.LogCommon, logCombined: middleware.LogCombined, logVhost: middleware.LogVhostCombined,
	logText: middleware.LogText, logJSON: middleware.LogJSON,
}

// logWords complete --log in shells.
var logWords = []string{
	"off\tno access log",
	"common\tthe Common Log Format",
	"combined\tthe same with Referer and User-Agent",
	"vhost\tcombined after the host and the port",
	"text\tkey=value lines",
	"json\tone object a line",
}

func (f *logFormat) String() string { return string(*f) }

// Type is the name of the value in the help.
func (f *logFormat) Type() string { return "format" }

func (f *logFormat) Set(s string) error {
	v := logFormat(s)
	if _, ok := logFormats[v]; !ok && v != logOff {
		return errors.New("want " + logNames)
	}
	*f = v
	return nil
}

// newLog returns the writer that the access log and the server's errors share: a handler on an event loop must not
// wait for a terminal or a pipe. Lines are written within 10 ms; those not written when the process is killed are
// lost.
func newLog(stderr io.Writer) *middleware.LineWriter {
	return middleware.NewLineWriter(stderr, &middleware.LineWriterOptions{Buffer: 256 << 10, Every: 10 * time.Millisecond})
}

// access returns a log of requests to w, nil for none.
func (f logFormat) access(w *middleware.LineWriter) *middleware.AccessLog {
	if f == logOff {
		return nil
	}
	return middleware.NewAccessLog(&middleware.AccessLogOptions{Format: logFormats[f], Output: w})
}

// errors returns the logger of the server's errors. They have the format of the access log if that is text or JSON,
// so that one parser can read all of stderr while the server runs. The formats of web servers have no lines for
// errors.
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
