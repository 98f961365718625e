package static

import (
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/rfc/coding"
	"github.com/chert-http/chert/internal/rfc/field"
	"github.com/chert-http/chert/internal/rfc/media"
)

// An entry is one version of a file in one coding, with all responses made from
// it. Its content is one of
//
//	body   in memory
//	file   an open descriptor
//	       neither: the file is opened for each response
//
// Fields that are not atomic are immutable.
type entry struct {
	about
	stat     stat
	body     []byte   // nil unless in memory
	file     *os.File // nil unless kept open
	fd       int      // file's
	tag      string   // identifies the version, quoted
	seekable bool     // ranges of the content can be read

	etag     string    // as sent: "" if a rule removes it
	modified time.Time // zero if there is none, or a rule removes it
	fields   []wire.Field
	ok       *direct.Response // the whole response; nil unless in memory
	head     *wire.Response   // the same without its content; nil if it is in memory

	negotiable bool  // its responses depend on Accept-Encoding
	squeezable bool  // it may be compressed on the fly
	young      bool  // a write soon after the read could have left the same times
	ahead      bool  // its date was in the future, so that it has none
	life       int64 // ns for which it is valid unchecked, if longer than interval

	check func() error // of File; nil unless file is set
	done  func()       // release, as a value allocated once

	unmod   atomic.Pointer[direct.Response] // see notModified
	refs    atomic.Int32                    // of file: one for the cache, one for each response
	checked atomic.Int64                    // when it was last compared with the file, by Handler.now
	stale   atomic.Bool
	unsent  atomic.Bool // loaded for a request that is not answered yet
	// siblings is the coding.Set of existing siblings, and siblingsKnown.
	// useless is the Set of codings that do not make it smaller.
	siblings, useless atomic.Uint32
}

// about is what is known of an entry before its content. Immutable.
type about struct {
	key   key
	name  string // of the file that has the content; for some variants a sibling's
	base  string // of a variant, the tag of the file that it is a coding of
	media string // the media type before rules; "" until it is known
}

const siblingsKnown = 1 << 16

// overhead is the approximate size of an entry apart from body and name, in
// bytes: heads, fields, the cache's own.
const overhead = 2048

func (e *entry) weight() int64 { return int64(len(e.body)) + int64(len(e.key.name)) + overhead }

// size is the content's length, in bytes.
func (e *entry) size() int64 {
	if e.ok != nil {
		return int64(len(e.body))
	}
	return e.stat.size
}

// acquire reports false if the descriptor has been closed already.
func (e *entry) acquire() bool {
	if e.file == nil {
		return true
	}
	for n := e.refs.Load(); n > 0; n = e.refs.Load() {
		if e.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

// release ends one use. The last one closes the descriptor.
func (e *entry) release() {
	if e.file != nil && e.refs.Add(-1) == 0 {
		e.file.Close()
	}
}

// contentTag is the entity tag of content: the same on all servers that have
// it.
func contentTag(sum uint64, size int64) string {
	b := append(make([]byte, 0, 40), '"')
	b = strconv.AppendUint(b, sum, 16)
	b = append(b, '-')
	b = strconv.AppendInt(b, size, 16)
	return string(append(b, '"'))
}

// statTag is the entity tag of a file in coding c that is too large to be hashed.
// That of a young file is unique to this load: another file of the same size may
// replace it within a tick of the clock that dates files (RFC 9110 section
// 8.8.1); the next check makes a lasting one. It includes the coding because
// gzip, zstd and others give their output the time of the input, and sizes may
// agree by chance (section 8.8.3.3).
func statTag(st *stat, c coding.Coding, young bool) string {
	b := append(make([]byte, 0, 60), '"')
	b = strconv.AppendUint(b, uint64(st.mtime), 16)
	b = append(b, '-')
	b = strconv.AppendInt(b, st.size, 16)
	if c != coding.Identity {
		b = append(b, '-')
		b = append(b, c.Token()...)
	}
	if young {
		b = append(b, '-')
		b = strconv.AppendUint(b, rand.Uint64(), 16)
	}
	return string(append(b, '"'))
}

// setBody makes b the content; the entry owns b from now on.
func (e *entry) setBody(b []byte) {
	e.body, e.seekable = b, true
	e.tag = contentTag(xxhash.Sum64(b), int64(len(b)))
}

// setMedia finds the media type of e, by the name or, as net/http does, by the
// beginning of the content.
func (h *Handler) setMedia(e *entry, beginning []byte) {
	if e.media == "" {
		e.media = h.typeOf(e.key.name)
	}
	if e.media == "" {
		e.media = media.Type(e.key.name)
	}
	if e.media == "" {
		e.media = http.DetectContentType(beginning)
	}
}

// furnish prepares the responses.
func (h *Handler) furnish(e *entry) {
	name := e.key.name
	head := make(http.Header, 8)
	head["Content-Type"] = []string{e.media}
	head["Etag"] = []string{e.tag}
	if e.seekable {
		head["Accept-Ranges"] = []string{"bytes"}
	}
	// RFC 9110 section 8.8.2.1: never a date in the future. Until the file got its real one, clients that know
	// no tags would keep what they have. Dates have whole seconds: a clock that is a little behind the one that
	// dates files changes nothing.
	if e.ahead = h.ahead(e); !e.ahead && !e.stat.modified().IsZero() {
		head["Last-Modified"] = []string{e.stat.modified().UTC().Format(http.TimeFormat)}
	}
	if h.Immutable && hasHash(path.Base(name)) {
		head["Cache-Control"] = []string{immutable}
	}
	h.apply(head, name, nil)
	if c := e.key.coding(); c != coding.Identity {
		head["Content-Encoding"] = []string{c.Token()}
	} else if head["Content-Encoding"] == nil {
		h.setNegotiable(e, head.Get("Content-Type"))
	}
	if e.negotiable || e.key.coding() != coding.Identity {
		addVary(head, "Accept-Encoding")
	}
	if e.key.kind&kindFallback != 0 {
		addVary(head, "Accept")
	}
	e.etag = head.Get("Etag")
	// A rule's value that is not a date is no condition.
	e.modified, _ = http.ParseTime(head.Get("Last-Modified"))
	e.answers(head)
}

// ahead reports whether e's file is dated in the future.
func (h *Handler) ahead(e *entry) bool {
	return e.stat.modified().Truncate(time.Second).After(h.wall())
}

// setNegotiable finds out which codings of e there can be.
func (h *Handler) setNegotiable(e *entry, contentType string) {
	if e.key.kind&^3 == kindNotFound || !coding.Compressible(contentType) {
		return
	}
	e.squeezable = h.maySqueeze(e.stat.size)
	e.negotiable = e.squeezable || !h.NoPrecompressed
}

// maySqueeze reports whether content of size bytes may be compressed on the fly.
func (c *config) maySqueeze(size int64) bool {
	return !c.NoCompression && size >= compressMin && size <= c.CompressMax
}

// answers prepares the responses with the fields of head.
func (e *entry) answers(head http.Header) {
	whole := direct.NewResponse(http.StatusOK, head, e.body)
	for _, f := range answerOf(whole).Fields {
		if f.Name != "Content-Length" {
			e.fields = append(e.fields, f)
		}
	}
	switch {
	case e.body != nil:
		e.ok = whole
		e.body = answerOf(whole).Body // the same bytes once
	default:
		e.head = wire.NewFileResponse(http.StatusOK, head, e.stat.size)
	}
}

// notModified returns the entry's 304, created at its first use.
func (e *entry) notModified() *direct.Response {
	if r := e.unmod.Load(); r != nil {
		return r
	}
	head := make(http.Header, len(e.fields))
	for _, f := range e.fields {
		// RFC 9110 section 15.4.5: no metadata except what a cache needs to
		// select and update. Last-Modified is useful only without an ETag.
		switch {
		case f.Name == "Content-Encoding", f.Name == "Content-Type", f.Name == "Accept-Ranges":
		case f.Name == "Last-Modified" && e.etag != "":
		default:
			head[f.Name] = append(head[f.Name], f.Value)
		}
	}
	r := direct.NewResponse(http.StatusNotModified, head, nil)
	e.unmod.Store(r)
	return r
}

// answerOf returns what a server would send for r.
func answerOf(r *direct.Response) wire.Answer {
	var x direct.Exchange
	x.Wire().Reset(wire.Request{Method: http.MethodGet})
	x.Send(r)
	return x.Wire().Finish()
}

// addVary adds a name to Vary, which a rule may have set.
func addVary(head http.Header, name string) {
	head["Vary"] = []string{varyOn(head.Get("Vary"), name)}
}

// varyOn is the value v of Vary with name in it.
func varyOn(v, name string) string {
	switch {
	case v == "":
		return name
	case v == "*" || field.HasToken(v, name):
		return v
	}
	return v + ", " + name
}

// lasting is for entries that are valid as long as another is.
func (e *entry) lasting() { e.checked.Store(math.MaxInt64) }

// field is the value of one of the content's fields.
func (e *entry) field(name string) string {
	for _, f := range e.fields {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}
