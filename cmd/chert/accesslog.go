package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"strconv"
	"strings"
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
		if strings.ContainsAny(s, `/\.`) {
			return fmt.Errorf("want %s, not a file; in a configuration log = { file = %q } has one", logNames, s)
		}
		return errors.New("want " + logNames)
	}
	*f = v
	return nil
}

// logEvery is how long a line may stay in the buffer of stderr or of a file.
const logEvery = 10 * time.Millisecond

// newLog returns the writer that the access log and the server's errors share: a handler on an event loop must not
// wait for a terminal or a pipe. Lines are written within logEvery; those not written when the process is killed are
// lost.
func newLog(stderr io.Writer) *middleware.LineWriter {
	o := &middleware.LineWriterOptions{BufferSize: 256 << 10, FlushInterval: logEvery}
	return middleware.NewLineWriter(stderr, o)
}

// access returns a log of requests to w, nil for none.
func (f logFormat) access(w *middleware.LineWriter) *middleware.AccessLog {
	if f == logOff {
		return nil
	}
	return middleware.NewAccessLog(&middleware.AccessLogOptions{Format: logFormats[f], Output: w})
}

// errors is what the server reports its errors through. They have the format of the access log if that has one for
// them, so that one parser can read all of stderr while the server runs. Those of web servers have none.
func (f logFormat) errors(w io.Writer) slog.Handler {
	switch f {
	case logText:
		return slog.NewTextHandler(w, nil)
	case logJSON:
		return slog.NewJSONHandler(w, nil)
	}
	return lineHandler{to: log.New(w, "chert: ", 0)}
}

// A lineHandler writes records for people: the message, and what belongs to it.
type lineHandler struct {
	to    *log.Logger
	attrs string // of WithAttrs, as they are written
}

func (h lineHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

func (h lineHandler) Handle(_ context.Context, r slog.Record) error {
	// Messages of the library begin with the name already: its other users' logs do not.
	line := strings.TrimPrefix(r.Message, "chert: ") + h.attrs
	if strings.HasPrefix(line, "proxy: ") { // package proxy's messages have it all
		return h.to.Output(2, line)
	}
	r.Attrs(func(a slog.Attr) bool {
		line += showAttr(a)
		return true
	})
	return h.to.Output(2, line)
}

func (h lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		h.attrs += showAttr(a)
	}
	return h
}

func (h lineHandler) WithGroup(string) slog.Handler { return h }

// showAttr is ` key=value`, quoted unless it is a word: names of files and what systems say cannot forge a line.
func showAttr(a slog.Attr) string {
	v := a.Value.Resolve().String()
	special := func(r rune) bool { return r == ' ' || r == '"' || r == '=' || !strconv.IsPrint(r) }
	if v == "" || strings.ContainsFunc(v, special) {
		v = strconv.Quote(v)
	}
	return " " + a.Key + "=" + v
}
