// Package static serves files from a folder of the system ([New]) or from any
// fs.FS ([NewFS]), with conditional requests, ranges, content codings and HEAD
// as RFC 9110 defines them.
//
//	h, err := static.New("public", nil)
//	if err != nil {
//		return err
//	}
//	defer h.Close()
//	http.Handle("/", h)
//
// A [Handler] is an http.Handler and runs on any server. On chert it is also a
// direct.Handler (see package direct): cached files are sent from the event
// loop, and larger files with sendfile.
//
// # What is served
//
// Only regular files below the folder. Neither "..", nor links, nor a folder
// that is replaced while a request runs lead out of it: the system enforces that
// (openat2 on Linux, os.Root elsewhere), not a check of the name. Links that
// stay inside are followed. Dotfiles are hidden, listings are off.
//
// # What is cached
//
// Small files are kept in memory, complete with the heads of their responses;
// for larger ones the open descriptor is kept. Both are bounded, and files that
// are requested often stay. Changes to a file, and its replacement, truncation
// or deletion, are noticed within a second, and so is the replacement of the
// folder itself.
//
// Replace files by renaming new ones over them: each response then contains one
// version, complete. A file of up to 1 MiB that was written to within the last two
// seconds is read into memory and sent from there. If a file is overwritten in
// place, grows or gets another time while it is being sent, the connection is closed as soon as that is
// detected, before the response is complete. The system transmits what it has
// queued of it by then, up to some MiB, with the contents that the file has at
// that moment: if that was the end of the response, it may mix two versions. This
// is true of all servers that use sendfile.
package static

// # Files of the package
//
//	path.go                a request's path becomes a clean name, or a redirect
//	source*.go, tree*.go   where files come from; the others know neither folders nor descriptors
//	entry.go, cache.go     one version of a file and its responses; which of them are kept
//	load.go, fresh.go      how an entry is made, and how long it is valid
//	answer.go, variant.go, partial.go, folder.go, errors.go
//	                       the one decision, for http.Handler and direct.Handler; send.go sends it as an http.Handler
//
// It knows no engine, connection or root package, so that it runs on net/http too; of
// chert it knows direct, the parts of RFC 9110 in internal, and the calls on
// files in internal/sys. Users and cmd import it.
