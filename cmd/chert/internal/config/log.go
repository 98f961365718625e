package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chert-http/chert/internal/filename"
	"github.com/chert-http/chert/middleware"
)

// Log is how requests are logged.
type Log struct {
	Format    string             // as --log
	File      string             // "" for stderr
	FileAt    Position           // of File
	Fields    []string           // of text and json; nil for all
	Skip      []filename.Pattern // of the paths that have no line
	Sample    int                // one of so many requests has a line; 0 for all
	RequestID bool
}

// MaxSample is the largest value of Log.Sample.
const MaxSample = 1 << 20

// logOf reads log, which is a format or a table; nil if there is none. What a table does
// not have is as in outer.
func (l *loader) logOf(t *table, outer Log) *Log {
	own := outer
	var ok bool
	switch t.m["log"].(type) {
	case nil:
		t.get("log")
		return nil
	case string:
		if own.Format, ok = l.logFormat(t, "log"); !ok {
			return nil
		}
		return &own
	case map[string]any:
	default:
		v, spot := t.get("log")
		t.wrongType("log", spot.value, "a format or a table", v)
		return nil
	}
	log := t.table("log")
	if log.m["format"] != nil {
		own.Format, _ = l.logFormat(log, "format")
	} else if log.get("format"); own.Format == "" || own.Format == "off" {
		own.Format = "combined"
	}
	if s, at, ok := log.str("file"); ok {
		own.File, own.FileAt = "", at
		if s != "" {
			own.File = l.path(s)
			l.secret("the log", own.File, at)
			if err := checkLogFile(own.File); err != nil {
				l.errorf(at, "file: %q: %v", own.File, err)
			}
		}
	}
	l.logFields(log, &own)
	l.logSkip(log, &own)
	if n := log.count("sample", 1, MaxSample); n != nil {
		own.Sample = *n
	}
	log.boolean("request_id", &own.RequestID)
	if l.log.RequestID && !own.RequestID {
		l.errorf(log.spot.child("request_id").value, "request_id is true for the whole file, and cannot be false here")
	}
	log.done()
	return &own
}

func (l *loader) logFormat(t *table, key string) (string, bool) {
	s, at, ok := t.str(key)
	if !ok {
		return "", false
	}
	if err := l.checks.Log(s); err != nil {
		l.errorf(at, "%s: %v", key, err)
		return "", false
	}
	return s, true
}

// checkLogFile reports why a file cannot be a log. It does not open or make it.
func checkLogFile(file string) error {
	info, err := os.Stat(filepath.Dir(file))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such folder")
	case err != nil:
		return plain(err)
	case !info.IsDir():
		return errors.New("this is not in a folder")
	}
	info, err = os.Stat(file)
	if err == nil && !info.Mode().IsRegular() && info.Mode()&fs.ModeCharDevice == 0 {
		return errors.New("this is not a regular file")
	}
	return nil
}

func (l *loader) logFields(t *table, to *Log) {
	all, ok := t.list("fields")
	if !ok {
		return
	}
	spot := t.spot.child("fields")
	if to.Format != "text" && to.Format != "json" && to.Format != "" {
		l.errorf(spot.key, "fields are those of the formats text and json, and this log is %s", to.Format)
	}
	to.Fields = nil
	if len(all) == 0 {
		l.errorf(spot.key, `fields is empty; "all" stands for every field`)
	}
	if len(all) == 1 && all[0].text == "all" {
		return
	}
	// What a handler adds to its line is what is known of an upstream.
	for _, it := range all {
		switch it.text {
		case "upstream":
			it.text = "added"
		case "added":
			it.text = "added " // no field, as any other word
		}
		if _, err := middleware.ParseLogFields(it.text); err != nil {
			text := strings.TrimPrefix(err.Error(), "middleware: ")
			text = strings.NewReplacer("added \"", "added\"", ", added", ", upstream").Replace(text)
			l.errorf(it.at, "fields: %s", text)
			continue
		}
		if slices.Contains(to.Fields, it.text) {
			l.errorf(it.at, "fields: %s is there twice", it.text)
			continue
		}
		to.Fields = append(to.Fields, it.text)
	}
}

func (l *loader) logSkip(t *table, to *Log) {
	all, ok := t.list("skip")
	if !ok {
		return
	}
	to.Skip = nil
	for _, it := range all {
		p, err := filename.ParsePattern(it.text)
		if err != nil {
			l.errorf(it.at, "skip: %v", err)
			continue
		}
		to.Skip = append(to.Skip, p)
	}
}
