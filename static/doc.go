// Package static serves files: a folder of the system ([New]) or any fs.FS
// ([NewFS]), with all that RFC 9110 has for them: validators and conditional
// requests, ranges, content codings, HEAD.
//
//	h, err := static.New("public", nil)
//	if err != nil {
//		return err
//	}
//	defer h.Close()
//	http.Handle("/", h)
//
// A [Handler] is an http.Handler and runs on any server. On chert it also
// answers the direct way (see package direct): what is in its cache is sent
// from the event loop, and larger files by the system itself.
//
// # What is served
//
// Regular files below the folder and nothing else. Neither "..", nor links, nor
// a folder that is replaced while a request runs lead out of it: that is left to
// the system (openat2 on Linux, os.Root elsewhere), not to a look at the name.
// Links that stay inside are followed. Dotfiles are hidden, listings are off.
//
// # What is kept
//
// Small files stay in memory, whole and with the heads of their answers; of
// larger ones the open descriptor is kept. Both are bounded, and what is asked
// for often stays. A file that is changed, replaced, truncated or deleted is
// noticed within a second, and so is another folder in the first one's place.
//
// Replace files by renaming new ones over them: an answer is of one version then,
// whole. One of up to 1 MiB that was written to within the last two seconds is
// read into memory and sent from there. A file that is written over in place
// while it is being sent ends the connection as soon as that is seen, before the
// answer is complete. What the system has queued of it by then, up to some MiB, is
// what the file holds when it leaves: if that was the answer's end, it may mix two
// versions. So do all servers that use sendfile.
//
// # How it is arranged
//
//	path.go                a request's path becomes a clean name, or a redirect
//	source*.go, tree*.go   where files come from; nothing above knows of folders or descriptors
//	entry.go, cache.go     one version of a file and its answers; what is kept of them
//	load.go, fresh.go      how an entry is made, and how long it holds
//	answer.go, variant.go, partial.go, folder.go, errors.go
//	                       the one decision for both ways; send.go is what the plain way adds
//
// # What it must not know
//
// No engine, connection or root package, so that it runs on net/http too; of
// chert it knows direct, the parts of RFC 9110 in internal, and the calls on
// files in internal/sys. Users and cmd import it.
package static
