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

// newLog returns the writer that the access log and the server's errors share: a handler on an event loop must not wait
// for a terminal or a pipe. A line is written within 10 ms; what was not when the process is killed is lost.
func newLog(stderr io.Writer) *middleware.LineWriter {
	return middleware.NewLineWriter(stderr, &middleware.LineWriterOptions{Buffer: 256 << 10, Every: 10 * time.Millisecond})
}

// access is a log of requests to w, nil for none.
func (f logFormat) access(w *middleware.LineWriter) *middleware.AccessLog {
	if f == logOff {
		return nil
	}
	return middleware.NewAccessLog(&middleware.AccessLogOptions{Format: logFormats[f], Output: w})
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
