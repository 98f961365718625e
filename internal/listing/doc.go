// Package listing writes the listing of a folder, as an HTML page or as JSON, and
// error pages of the same design.
//
// Names are arbitrary bytes, chosen by anyone with write access to the folder.
// Each is written in three forms, and each form has one function:
//
//	URL   appendURL    every byte that is not plain in a path is percent-encoded; relative, with "./" before it
//	HTML  appendName   escaped; invisible characters and direction controls are shown as escapes such as \n or \u202e
//	JSON  appendJSON   valid UTF-8, U+FFFD for other bytes; the member "url" is exact
//
// The page works without its script, which filters by name, shows times in the
// reader's time zone, and names the host where the page itself can only show
// "Index".
//
// The page is also well-formed XML, and the tests parse it as such. It loads no
// other resource, and [ContentSecurityPolicy] allows its style sheet and script
// and nothing else. Its links carry sort, order and format in the query; see
// [ParseOrder].
package listing

// No files, no HTTP messages, no clock: entries come in, bytes go out. The caller
// decides what may be listed at all (dotfiles, links that lead outside).
//
// It imports the standard library only. static may import it.
