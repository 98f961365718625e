package static

import (
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/sys"
	"golang.org/x/sync/singleflight"
)

// A Handler serves files. It is safe for any number of requests at the same
// time, and implements direct.Handler.
type Handler struct {
	config
	src   source
	cache *cache
	count counters

	now  func() int64     // monotonic, ns; tests set it
	wall func() time.Time // for comparing with files' times; tests set it

	looked  atomic.Int64 // when the folder was last looked for, by now
	swapped atomic.Int64 // when another folder was found in its place
	swept   atomic.Int64 // when descriptors were last looked through
	logged  atomic.Int64 // when ErrorLog last got a line
	outward atomic.Int64 // when it last got one about a link that leads out
	closed  atomic.Bool

	flight  singleflight.Group
	squeeze chan struct{} // a place for each compression that runs
	lists   lists         // of folders that are being made
	texts   sync.Map      // status and form -> *direct.Response, when there are no rules
}

var _ direct.Handler = (*Handler)(nil)

// New serves the files of the folder dir. Nothing outside it can be reached.
// What is at the path dir when a request comes is served, so the folder may be
// replaced. The error says what is wrong with dir or with o, which may be nil.
func New(dir string, o *Options) (*Handler, error) {
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	s, err := openDir(dir)
	if err != nil {
		return nil, fmt.Errorf("static: %w", err)
	}
	return newHandler(s, o)
}

// NewFS serves the files of fsys, such as an embed.FS, an os.DirFS or a
// zip.Reader. What of it is outside is its own affair: os.DirFS follows links
// out of its folder, [New] does not. Files whose FS has no times are taken to
// change only in size. The error says what is wrong with o, which may be nil.
func NewFS(fsys fs.FS, o *Options) (*Handler, error) { return newHandler(fsSource{fsys}, o) }

func newHandler(s source, o *Options) (*Handler, error) {
	c, err := newConfig(o)
	if err == nil {
		err = c.checkFiles(s)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	h := &Handler{
		config: c, src: s, cache: newCache(&c, s.keeps()), now: sys.Nanotime, wall: time.Now,
		squeeze: make(chan struct{}, runtime.GOMAXPROCS(0)),
	}
	h.lists.places = make(chan struct{}, min(runtime.GOMAXPROCS(0), maxListing))
	h.looked.Store(h.now())
	h.swept.Store(h.now())
	h.swapped.Store(math.MinInt64)
	h.logged.Store(math.MinInt64 / 2)
	h.outward.Store(math.MinInt64 / 2)
	return h, nil
}

// ServeDirect implements direct.Handler. It reports false for what is not
// there, what would have to be compressed, listed or sent in several parts, files
// whose siblings have not been looked for, and all that only an fs.FS can tell.
func (h *Handler) ServeDirect(x *direct.Exchange) bool { return h.answer(x, nil) }

// ServeHTTP implements http.Handler. The request's body is not read.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p := &plain{ResponseWriter: w, h: h}
	defer p.end()
	direct.Respond(p, r, func(x *direct.Exchange) { h.answer(x, p) })
}

// Close gives back memory and descriptors. Answers that are being sent are
// finished; later requests are answered 503. It always returns nil.
func (h *Handler) Close() error {
	h.closed.Store(true)
	h.cache.clear()
	return h.src.close()
}
