// Package listing writes a folder's listing: as an HTML page and as JSON. It
// also writes the page of an error, which has the same look.
//
// Names are arbitrary bytes, chosen by whoever may write into the folder. Each
// is written three ways, and each way has one function:
//
//	URL   appendURL    every byte that is not plain in a path is percent-encoded; relative, with "./" before it
//	HTML  appendName   escaped; what cannot be seen, or turns text around, is shown as an escape such as \n or \u202e
//	JSON  appendJSON   valid UTF-8, U+FFFD for what is not; the member "url" is exact
//
// The page works without its script, which filters by name, shows times in the
// reader's zone, and names the host where the page itself can only say "Index".
//
// The page is well-formed XML too, which is how the tests read it. It loads
// nothing, and [ContentSecurityPolicy] allows its style sheet and script and
// nothing else.
// Its links name sort, order and format in the query; see [ParseOrder].
//
// # What it must not know
//
// No files, no HTTP messages, no clock: entries come in, bytes go out. What may
// be listed at all (dotfiles, links that lead out) is its caller's to decide.
//
// It imports the standard library only. static may import it.
package listing
