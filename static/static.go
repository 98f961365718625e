package static

import (
	"errors"
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

// A Handler serves files. It is an http.Handler and a direct.Handler, and safe
// for concurrent use.
type Handler struct {
	config
	src   source
	cache *cache
	count counters

	now  func() int64     // monotonic, ns; tests set it
	wall func() time.Time // for comparing with files' times; tests set it

	looked  atomic.Int64 // when the folder was last checked, by now
	swapped atomic.Int64 // when another folder was found at its path
	swept   atomic.Int64 // when descriptors were last swept
	logged  atomic.Int64 // when Logger last got an error
	outward atomic.Int64 // when it last got one about a link that leads out
	closed  atomic.Bool

	flight  singleflight.Group
	squeeze chan struct{} // a slot for each running compression
	lists   lists         // of folders, being generated
	texts   sync.Map      // status and form -> *direct.Response, if there are no rules
}

var _ direct.Handler = (*Handler)(nil)

// New returns a Handler for the files of the folder dir. Files outside of it
// cannot be reached. Each request is served from the folder that is at the path
// dir at that time, so the folder may be replaced. o may be nil. New returns an
// error if dir or o is invalid.
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

// NewFS returns a Handler for the files of fsys, such as an embed.FS, an
// os.DirFS or a zip.Reader. Which files can be reached depends on fsys:
// os.DirFS follows links out of its folder, [New] does not. Files without times
// are assumed to change only in size. o may be nil. NewFS returns an error if fsys
// is nil, as that of an [fs.Sub] that failed, or o is invalid.
func NewFS(fsys fs.FS, o *Options) (*Handler, error) {
	if fsys == nil {
		return nil, errors.New("static: NewFS: the fs.FS is nil")
	}
	return newHandler(fsSource{fsys}, o)
}

func newHandler(s source, o *Options) (*Handler, error) {
	c, err := newConfig(o)
	if err == nil && len(c.Follow) > 0 {
		s, err = follow(s, &c)
	}
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

// ServeDirect implements direct.Handler. It reports false for files that do not
// exist, responses that would have to be compressed, listed or sent in several
// parts, files whose siblings have not been looked up yet, and what an fs.FS must
// be asked for, except, once a second, whether a file is still the same. Now and
// then it leaves a request to ServeHTTP, which looks for files that are gone.
func (h *Handler) ServeDirect(x *direct.Exchange) bool { return h.answer(x, nil) }

// ServeHTTP implements http.Handler. The request's body is not read.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p := &plain{ResponseWriter: w, h: h}
	defer p.end()
	direct.Respond(p, r, func(x *direct.Exchange) { h.answer(x, p) })
}

// Close releases memory and descriptors. Responses that are being sent are
// finished; later requests receive 503. It always returns nil.
func (h *Handler) Close() error {
	h.closed.Store(true)
	h.cache.clear()
	return h.src.close()
}
