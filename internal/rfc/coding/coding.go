package coding

import "strconv"

// A Coding is a content coding (RFC 9110 section 8.4.1).
type Coding uint8

// The codings. Identity is content as it is.
const (
	Identity Coding = iota
	Gzip
	Brotli
	Zstd

	codings // how many there are
)

// OfFiles are the codings that files come in, the one that is preferred first. It is not to be changed.
var OfFiles = []Coding{Brotli, Zstd, Gzip}

var (
	tokens   = [codings]string{"", "gzip", "br", "zstd"}
	suffixes = [codings]string{"", ".gz", ".br", ".zst"}
)

// Token returns the value of Content-Encoding, "" for Identity.
func (c Coding) Token() string {
	if c >= codings {
		return ""
	}
	return tokens[c]
}

// Suffix returns the suffix of files in this coding, with the dot; "" for
// Identity.
func (c Coding) Suffix() string {
	if c >= codings {
		return ""
	}
	return suffixes[c]
}

// String implements fmt.Stringer.
func (c Coding) String() string {
	switch {
	case c == Identity:
		return "identity"
	case c < codings:
		return tokens[c]
	}
	return "coding(" + strconv.Itoa(int(c)) + ")"
}

// A Set is a set of codings. Its zero value is empty.
type Set uint8

// Has reports whether c is in s.
func (s Set) Has(c Coding) bool { return c < codings && s&(1<<c) != 0 }

// With returns s with c added. Invalid codings are ignored.
func (s Set) With(c Coding) Set {
	if c >= codings {
		return s
	}
	return s | 1<<c
}
