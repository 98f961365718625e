package main

import (
	"cmp"
	"fmt"
	"log"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/internal/filename"
	"github.com/chert-http/chert/middleware"
)

// logs are the logs of a configuration: that of the file, and those of sites and routes. A nil *logs logs nothing.
type logs struct {
	top  *middleware.AccessLog // of the file, and of requests without a site; nil for none
	ids  bool                  // some requests have ids
	all  bool                  // all of them have
	file config.Log            // that of top

	made  map[*config.Log]*middleware.AccessLog // nil for no lines
	files []*logFile
	pool  *logFiles
}

// openLogs opens the logs of cfg. After an error none is open.
func (s *server) openLogs(up *setup, cfg *config.Config) error {
	top := cfg.Log
	if s.o.given("log") || top.Format == "" || s.o.quiet && top.File == "" {
		top = config.Log{Format: string(s.o.log), RequestID: top.RequestID}
	}
	if up.format = logFormat(top.Format); top.File != "" {
		up.format = logOff // stderr has only errors
	}
	l := &logs{made: make(map[*config.Log]*middleware.AccessLog), pool: s.files, all: top.RequestID, file: top}
	l.ids = l.all
	var err error
	l.top, err = s.openLog(l, &top)
	for _, spec := range logSpecs(cfg) {
		if _, ok := l.made[spec]; ok || err != nil {
			continue
		}
		l.ids = l.ids || spec.RequestID
		l.made[spec], err = s.openLog(l, spec)
	}
	if err != nil {
		l.close()
		return err
	}
	up.logs = l
	return nil
}

// logSpecs returns the logs of sites and routes. Those that have none of their own share one.
func logSpecs(cfg *config.Config) (all []*config.Log) {
	for _, site := range cfg.Sites {
		all = append(all, site.Log)
		for _, r := range site.Routes {
			all = append(all, r.Log)
		}
	}
	return slices.DeleteFunc(all, func(l *config.Log) bool { return l == nil })
}

// openLog opens a log, nil if it has no lines. The error has the position in the configuration.
func (s *server) openLog(l *logs, spec *config.Log) (*middleware.AccessLog, error) {
	format := logFormat(spec.Format)
	if format == logOff || s.o.quiet && spec.File == "" && !s.o.given("log") {
		return nil, nil
	}
	fields, err := middleware.ParseLogFields(spec.Fields...)
	if err != nil {
		return nil, err // config has checked them
	}
	out := s.log
	if spec.File != "" {
		file, err := l.pool.open(spec.File)
		if err != nil {
			in := cmp.Or(spec.FileAt.File, s.o.config)
			return nil, config.Problems{{File: in, At: spec.FileAt, Message: "file: " + err.Error()}}
		}
		l.files = append(l.files, file)
		out = file.lines
	}
	o := &middleware.AccessLogOptions{Format: logFormats[format], Output: out, Fields: fields,
		Sample: spec.Sample, RequestID: spec.RequestID, Query: slices.Contains(spec.Fields, "query")}
	if len(spec.Skip) > 0 {
		o.Skip = func(path string) bool {
			name := strings.TrimPrefix(path, "/")
			return slices.ContainsFunc(spec.Skip, func(p filename.Pattern) bool { return p.Match(name) })
		}
	}
	return middleware.NewAccessLog(o), nil
}

// of returns the middleware of a site's or route's log; nil is the file's.
func (l *logs) of(spec *config.Log) (all []func(http.Handler) http.Handler) {
	if l == nil {
		return nil
	}
	access := l.top
	if spec != nil {
		access = l.made[spec]
	}
	if access == nil && l.top == nil {
		return l.id(spec)
	}
	return append([]func(http.Handler) http.Handler{orNone(access).Override}, l.id(spec)...)
}

// showsUpstreams reports whether the lines of a log, nil for the file's, have what is known of upstreams.
func (l *logs) showsUpstreams(spec *config.Log) bool {
	switch {
	case l == nil:
		return false
	case spec == nil:
		spec = &l.file
	}
	f := logFormat(spec.Format)
	return (f == logText || f == logJSON) && (spec.Fields == nil || slices.Contains(spec.Fields, "added"))
}

// id returns what gives ids to the requests of a log, if nothing outside does.
func (l *logs) id(spec *config.Log) (all []func(http.Handler) http.Handler) {
	if spec == nil || !spec.RequestID || l.all {
		return nil
	}
	return append(all, middleware.RequestID(&middleware.RequestIDOptions{AcceptForwarded: true}))
}

// noLines is the log of requests that have none.
var noLines = middleware.NewAccessLog(&middleware.AccessLogOptions{Format: middleware.LogNone})

func orNone(l *middleware.AccessLog) *middleware.AccessLog {
	if l == nil {
		return noLines
	}
	return l
}

// ofFile logs the requests of h in the log of the file, unless h chooses another. It has a fast path if h has.
func (l *logs) ofFile(h http.Handler) http.Handler {
	if l == nil || l.top == nil {
		return h
	}
	return l.top.Override(h)
}

// around is the outermost: it measures the requests whose log is chosen inside, where their site is known. One log that
// is full, as its disk is slow, does not stop the sites that have another.
func (l *logs) around(h http.Handler) http.Handler {
	for _, access := range l.made {
		if access != nil {
			return noLines.Wrap(h)
		}
	}
	if l.top != nil {
		return noLines.Wrap(h)
	}
	return h
}

// ofPlain logs the requests of plain HTTP, which have no site.
func (l *logs) ofPlain(h http.Handler) http.Handler {
	if l.all {
		h = middleware.RequestID(nil)(h)
	}
	if l.top != nil {
		h = l.top.Wrap(h)
	}
	return h
}

// identified gives ids to all requests, if the log of the file has them.
func (l *logs) identified(h http.Handler) http.Handler {
	if !l.all {
		return h
	}
	return middleware.RequestID(&middleware.RequestIDOptions{AcceptForwarded: true})(h)
}

func (l *logs) close() {
	if l == nil {
		return
	}
	for _, f := range l.files {
		l.pool.release(f)
	}
}

// logFiles are the files that are open. Configurations, the sites of one, and the one that a reload replaces, share
// those that they have in common.
type logFiles struct {
	errs *log.Logger

	mu     sync.Mutex
	byPath map[string]*logFile // by the path without links
}

// logFile is a log that is open.
type logFile struct {
	key   string
	path  string
	lines *middleware.LineWriter
	users int // guarded by logFiles.mu
	lost  lostLines
}

func newLogFiles(errs *log.Logger) *logFiles {
	return &logFiles{errs: errs, byPath: make(map[string]*logFile)}
}

// logBuffer is how much of each file is buffered, in bytes; twice that is kept.
const logBuffer = 64 << 10

// open opens a file, or makes the caller one more user of it.
func (l *logFiles) open(path string) (*logFile, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := config.Resolve(path)
	f, ok := l.byPath[key]
	if !ok {
		f = &logFile{key: key, path: path}
		f.lost.say = func(n int64, err error) {
			l.errs.Printf("the log %s has lost %s: %v", quote(path), plural(int(n), "line"), cause(err))
		}
		o := &middleware.LineWriterOptions{BufferSize: logBuffer, FlushInterval: logEvery, Failed: f.lost.add}
		var err error
		f.lines, err = middleware.OpenLog(path, o)
		if err != nil {
			return nil, fmt.Errorf("cannot open the log %s: %w", quote(path), cause(err))
		}
		l.byPath[key] = f
	}
	f.users++
	return f, nil
}

// release closes a file without users. Lines of responses that have not ended yet are still written.
func (l *logFiles) release(f *logFile) {
	l.mu.Lock()
	f.users--
	last := f.users == 0
	if last {
		delete(l.byPath, f.key)
	}
	l.mu.Unlock() // a disk may be slow, and so may be what reads stderr
	if last {
		f.close()
	}
}

func (f *logFile) close() {
	f.lines.Close()
	f.lost.report()
}

// reopen opens all files again. One that cannot be opened stays as it is.
func (l *logFiles) reopen() {
	for _, f := range l.all() {
		if err := f.lines.Reopen(); err != nil {
			l.errs.Printf("the log %s cannot be opened again, and the file from before stays in use: %v", quote(f.path),
				cause(err))
		}
	}
}

// close closes all files, at the end.
func (l *logFiles) close() {
	for _, f := range l.all() {
		f.close()
	}
}

func (l *logFiles) all() []*logFile {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.byPath))
}

// lostLines reports lines that a file did not accept: at once, and then at most every lostEvery.
type lostLines struct {
	say func(n int64, err error) // it may wait; nothing else waits for it

	mu     sync.Mutex
	n      int64 // not reported yet
	err    error
	saying bool // add is
	last   time.Time
}

const lostEvery = 10 * time.Second

// add may be called concurrently.
func (l *lostLines) add(n int64, err error) {
	l.mu.Lock()
	l.n += n
	l.err = err
	due := !l.saying && time.Since(l.last) >= lostEvery
	l.saying = l.saying || due
	l.mu.Unlock()
	if due {
		l.report()
		l.mu.Lock()
		l.saying, l.last = false, time.Now()
		l.mu.Unlock()
	}
}

// report reports what add has left.
func (l *lostLines) report() {
	l.mu.Lock()
	n, err := l.n, l.err
	l.n = 0
	l.mu.Unlock()
	if n > 0 {
		l.say(n, err)
	}
}
