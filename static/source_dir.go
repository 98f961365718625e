package static

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/chert-http/chert/internal/listing"
)

// dirSource is a folder of the system, identified by its path: the current
// folder at that path is served, also after it or a link to it has been
// replaced.
type dirSource struct {
	dir  string // absolute
	real bool   // opened.real is needed; set before the source is used
	cur  atomic.Pointer[opened]
	turn sync.Mutex // held while cur is replaced
}

// A tree is an open folder that no name can leave. Its methods are source's.
// Two implementations: openat2 where there is one, os.Root.
type tree interface {
	stat(name string) (stat, error)
	peek(name string) (stat, error)
	open(name string) (file, stat, error)
	// list stats the links among the entries by link, unless that is nil.
	list(name string, max int, link linkStat) (entries []listing.Entry, more bool, err error)
	// readLink returns the target of a link; ok is false if name is none.
	readLink(name string) (to string, ok bool, err error)
	// straight returns the tree for names without links: where the system permits it, one
	// that leads through a link is errChanging.
	straight() tree
	close() error
}

// A linkStat stats an entry of a folder that is a link.
type linkStat func(entry string) (stat, error)

// opened is a tree with a count of its users: the source is one, each call
// another. The last one to leave closes it.
type opened struct {
	tree
	id   stat
	real string // the path without links; "" if it is not needed
	refs atomic.Int32
}

func (o *opened) leave() {
	if o.refs.Add(-1) == 0 {
		o.close()
	}
}

func openDir(dir string) (*dirSource, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s := &dirSource{dir: abs}
	o, err := s.openNow()
	if err != nil {
		return nil, err
	}
	s.cur.Store(o)
	return s, nil
}

// openNow opens the folder that is now at the path.
func (s *dirSource) openNow() (*opened, error) {
	i, err := os.Stat(s.dir)
	if err != nil {
		return nil, err
	}
	if !i.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", s.dir)
	}
	t, err := openTree(s.dir)
	if err != nil {
		return nil, err
	}
	id, err := t.stat("")
	if err != nil {
		t.close()
		return nil, err
	}
	o := &opened{tree: t, id: id}
	if s.real {
		o.real = realPath(s.dir, &id)
	}
	o.refs.Store(1)
	return o, nil
}

// realPath returns the path without links of the folder that is open as id.
func realPath(dir string, id *stat) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		if i, err := os.Stat(real); err == nil && sameFolder(i, id) {
			return real
		}
	}
	return dir // it is being replaced, which will be noticed
}

// enter returns the open folder, on which the caller must call leave.
func (s *dirSource) enter() (*opened, error) {
	for {
		o := s.cur.Load()
		if o == nil {
			return nil, fs.ErrClosed
		}
		for n := o.refs.Load(); n > 0; n = o.refs.Load() {
			if o.refs.CompareAndSwap(n, n+1) {
				return o, nil
			}
		}
		// It has just been replaced.
	}
}

func (s *dirSource) moved() bool {
	o, err := s.enter()
	if err != nil {
		return false
	}
	defer o.leave()
	i, err := os.Stat(s.dir)
	if err != nil || sameFolder(i, &o.id) {
		return false // gone: the open one is served until there is another
	}
	return s.reopen(o)
}

// reopen replaces old by the folder that is now at the path.
func (s *dirSource) reopen(old *opened) bool {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.cur.Load() != old {
		return false // another was quicker, or close was
	}
	o, err := s.openNow()
	if err != nil {
		return false
	}
	s.cur.Store(o)
	old.leave()
	return true
}

func (s *dirSource) close() error {
	s.turn.Lock()
	defer s.turn.Unlock()
	if o := s.cur.Swap(nil); o != nil {
		o.leave()
	}
	return nil
}

func (s *dirSource) keeps() bool { return true }

func (s *dirSource) localName(name string) bool { return name == "" || localName(name) }

func (s *dirSource) stat(name string) (stat, error) {
	o, err := s.enter()
	if err != nil {
		return stat{}, err
	}
	defer o.leave()
	return o.stat(name)
}

func (s *dirSource) peek(name string) (stat, error) {
	o, err := s.enter()
	if err != nil {
		return stat{}, err
	}
	defer o.leave()
	return o.peek(name)
}

func (s *dirSource) open(name string) (file, stat, error) {
	o, err := s.enter()
	if err != nil {
		return nil, stat{}, err
	}
	defer o.leave()
	return o.open(name)
}

func (s *dirSource) list(name string, max int) (entries []listing.Entry, more bool, err error) {
	o, err := s.enter()
	if err != nil {
		return nil, false, err
	}
	defer o.leave()
	return o.list(name, max, nil)
}
