package middleware

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/rfc/coding"
	"github.com/chert-http/chert/internal/rfc/cond"
	"github.com/chert-http/chert/internal/rfc/field"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// CompressOptions are the options of Compress.
type CompressOptions struct {
	// Codings are the codings to offer, the best first: "zstd", "br", "gzip";
	// nil: all, in this order. zstd takes half the time of gzip or less for
	// results about a tenth longer, shorter for JSON. The client's quality
	// values take precedence.
	Codings []string
	// MinSize is the smallest response that is compressed, in bytes. Default 1024;
	// negative: no limit. A response that is flushed before it has come so far is
	// compressed all the same: it streams.
	MinSize int
	// Types reports whether a media type, which may have parameters, is to be
	// compressed; nil: text in the widest sense.
	Types func(mediaType string) bool
	// MaxEncoders is how many responses may be compressed at the same time, in all
	// handlers that one Compress wraps. Default 128; negative: no limit.
	// Responses beyond it are sent uncompressed, with Vary. An encoder takes about
	// 1.1 MiB of memory for gzip and 0.7 MiB for br and zstd, from the first byte
	// until the handler returns: as long as a stream of events lasts, and as long
	// as a client reads its response slowly or not at all.
	MaxEncoders int
}

// defaultEncoders is 140 MiB of encoders at most.
const defaultEncoders = 128

type compress struct {
	prefer  []coding.Coding
	offered coding.Set
	min     int
	types   func(string) bool
	keys    [4]string // for Derive, by coding
	max     int64     // of live; negative: no limit
	live    atomic.Int64
}

// enter takes a slot for an encoder, if there is one. leave returns it.
func (c *compress) enter() bool {
	if c.live.Add(1) <= c.max || c.max < 0 {
		return true
	}
	c.live.Add(-1)
	return false
}

func (c *compress) leave() { c.live.Add(-1) }

var compressors atomic.Int64 // distinguishes the Responses that each has derived

// Compress compresses responses with the coding that the client prefers (RFC
// 9110 section 12.5.3): zstd, br or gzip. Responses that are small, are not
// text, have a Content-Encoding already, are a part (206), or have
// "Cache-Control: no-transform" are not changed, nor is what follows Hijack, unless a
// response of a known length has begun, or an extended CONNECT. Flush sends everything
// written so far, so streams of events work.
//
// A compressed response loses Content-Length and Accept-Ranges, and its ETag
// becomes weak, because it names several representations. A 304 has the tag of
// the response that the client's If-None-Match names. Vary has Accept-Encoding
// where it matters. HEAD gets the fields of GET, as far as they can be known
// without the body.
//
// A request that a direct.Handler answers with a file to be compressed is served
// again on the ordinary path. Everything inside Compress then sees it twice: limits,
// which would charge it twice, belong outside.
//
// Compression can leak secrets (BREACH): if a page has a secret (a token
// against forged requests) and text that an attacker chooses (a search word),
// the length of the response reveals when the two agree, letter by letter. TLS
// does not hide it. Do not compress such pages, or mask the secret differently
// in each response.
//
// On the fast path a direct.Response is compressed once and kept with it.
// Responses written by a handler are compressed each time, and are not on the
// fast path if they are files.
//
// It is an error if one of Codings is not known.
func Compress(o *CompressOptions) (func(http.Handler) http.Handler, error) {
	c, err := newCompress(options(o))
	if err != nil {
		return nil, err
	}
	return c.around, nil
}

// around is the middleware.
func (c *compress) around(next http.Handler) http.Handler {
	return wrap.Handler(next,
		func(w http.ResponseWriter, r *http.Request) {
			if tunnels(r) {
				next.ServeHTTP(w, r)
				return
			}
			a := &compressing{
				c: c, coding: c.choose([]byte(strings.Join(r.Header["Accept-Encoding"], ","))),
				head: r.Method == http.MethodHead, asked: wire.FieldsOf(r.Header),
			}
			a.Serve(next, w, r, a)
		},
		c.serveDirect)
}

func newCompress(o CompressOptions) (*compress, error) {
	c := &compress{
		min:   max(cmp.Or(o.MinSize, 1024), 1), // a coded form of nothing is longer
		types: o.Types, max: int64(cmp.Or(o.MaxEncoders, defaultEncoders)),
	}
	if c.types == nil {
		c.types = coding.Compressible
	}
	if o.Codings == nil {
		o.Codings = []string{"zstd", "br", "gzip"}
	}
	for _, name := range o.Codings {
		i := coding.Identity
		for _, known := range []coding.Coding{coding.Gzip, coding.Brotli, coding.Zstd} {
			if known.Token() == name {
				i = known
			}
		}
		if i == coding.Identity {
			return nil, fmt.Errorf("middleware: Compress: Codings: %q is not known; there are zstd, br and gzip", name)
		}
		c.prefer, c.offered = append(c.prefer, i), c.offered.With(i)
	}
	id := strconv.FormatInt(compressors.Add(1), 10)
	for i := range c.keys {
		c.keys[i] = "compress " + id + " " + strconv.Itoa(i)
	}
	return c, nil
}

// choose returns the coding for a client. A client that refuses identity, and
// knows no coding of ours, gets identity all the same: any response is better
// than none.
func (c *compress) choose(accept []byte) coding.Coding {
	if len(accept) == 0 {
		return coding.Identity
	}
	chosen, _ := coding.Choose(accept, c.offered, c.prefer)
	return chosen
}

// header is an http.Header, or the fields of an exchange.
type header interface {
	Get(name string) string
	Values(name string) []string
	Set(name, value string)
	Add(name, value string)
	Del(name string)
}

// codable reports whether the fields permit coding a response, apart from its
// type.
func (c *compress) codable(status int, h header) bool {
	switch {
	case status == http.StatusSwitchingProtocols, status == http.StatusNoContent, status == http.StatusNotModified,
		status == http.StatusPartialContent, status == http.StatusResetContent:
		return false
	case h.Get("Content-Encoding") != "", h.Get("Content-Range") != "":
		return false
	}
	// RFC 9110 section 7.7 by way of RFC 9111 section 5.2.2.6: MUST NOT transform
	// the content.
	return !directs(h, "no-transform")
}

// directs reports whether one of the lines of Cache-Control has a directive.
func directs(h header, directive string) bool {
	return slices.ContainsFunc(h.Values("Cache-Control"), func(v string) bool { return field.HasToken(v, directive) })
}

// mark changes the fields of a coded response.
func mark(h header, c coding.Coding) {
	vary(h)
	h.Set("Content-Encoding", c.Token())
	h.Del("Content-Length")
	h.Del("Accept-Ranges")
	for _, name := range digests {
		h.Del(name)
	}
	weaken(h)
}

// digests are of the bytes that are sent, after coding (RFC 9530 sections 2 and 3, RFC 3230, RFC 1864).
var digests = [...]string{"Content-Digest", "Repr-Digest", "Digest", "Content-Md5"}

// weaken: RFC 9110 section 8.8.3.3: different representations must not have the
// same strong tag.
func weaken(h header) {
	if tag := h.Get("Etag"); strings.HasPrefix(tag, `"`) {
		h.Set("Etag", "W/"+tag)
	}
}

// vary adds Accept-Encoding to Vary.
func vary(h header) {
	for _, v := range h.Values("Vary") {
		if v == "*" || field.HasToken(v, "Accept-Encoding") {
			return
		}
	}
	h.Add("Vary", "Accept-Encoding")
}

// unmodified completes a 304, whose fields must be those of the 200 (RFC 9110
// section 15.4.5), which is not known.
func unmodified(h header, c coding.Coding, asked wire.Fields) {
	vary(h)
	if weakens(h.Get("Etag"), c, asked) {
		weaken(h)
	}
}

// weakens reports whether a 304's tag is made weak. The client names the
// response that it has: a coded one came with the weak tag, an uncoded one with
// the handler's. If it names neither, the tag is made weak: a strong tag that
// is not the stored response's keeps a cache from using the 304 (RFC 9111
// section 4.3.4).
func weakens(tag string, c coding.Coding, asked wire.Fields) bool {
	return c != coding.Identity && (!cond.Named(asked, tag) || cond.Named(asked, "W/"+tag))
}
