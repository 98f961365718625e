package jwt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxSet bounds a JWKS document, in bytes, unpacked.
	maxSet = 1 << 20
	// fetchTime bounds a fetch as a whole.
	fetchTime = 10 * time.Second
	// patience is how long requests wait for a fetch, counted from its start.
	patience = 5 * time.Second
	// firstRetry is the delay after a fetch that failed; it doubles up to
	// RefreshUnknown.
	firstRetry = time.Second
)

// A keySet is the JWKS as it was last fetched. Whatever the endpoint returns,
// the last valid keys stay. There is never more than one fetch at a time; all
// requests that need one wait for the same.
type keySet struct {
	o      *Options
	client *http.Client
	shown  string // the address without its password
	keys   atomic.Pointer[published]

	patience time.Duration
	hung     chan struct{} // wakes keepFresh: the endpoint hangs

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex // guards all below, and that nothing is added to running after Close
	closed bool
	// hangs: the last fetch took longer than patience, or the current one has.
	// Then requests do not wait for the next either, until a fetch was quicker:
	// an endpoint that hangs costs one patience and not one for each token.
	hangs  bool
	under  *fetch    // in progress, or nil
	caused time.Time // when the last fetch for a token began
}

// A fetch has ended when done is closed; then err is valid: errHangs if it
// brought the keys, but not within patience. When late is closed, requests no
// longer wait for it.
type fetch struct {
	done, late chan struct{}
	err        error
}

func (f *fetch) isLate() bool {
	select {
	case <-f.late:
		return true
	default:
		return false
	}
}

// newKeySet fetches the set. A failure is logged and not returned: the endpoint
// may come up after this process.
func newKeySet(o *Options) *keySet {
	s := &keySet{o: o, shown: o.JWKS, patience: patience, hung: make(chan struct{}, 1)}
	if u, err := url.Parse(o.JWKS); err == nil {
		s.shown = u.Redacted()
	}
	client := *o.Client
	client.CheckRedirect = o.checkRedirect(client.CheckRedirect)
	s.client = &client
	s.ctx, s.cancel = context.WithCancel(context.Background())
	first := s.start(true)
	<-first.done
	s.running.Go(func() { s.keepFresh(first.err) })
	return s
}

func (s *keySet) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.running.Wait()
}

// errHangs makes keepFresh try again soon, as after any other error: while
// requests do not wait, the first with a new key must not be the one to find
// out that the endpoint works again.
var errHangs = errors.New("the endpoint hangs")

// keepFresh fetches the set every Refresh, and sooner after an error.
func (s *keySet) keepFresh(err error) {
	var retry time.Duration
	for {
		wait := s.o.Refresh
		if err == nil {
			retry = 0
		} else {
			longest := s.o.RefreshUnknown
			if longest < 0 {
				longest = defaultUnknown
			}
			retry = min(max(2*retry, firstRetry), longest)
			wait = min(wait, retry)
		}
		timer := time.NewTimer(wait)
		hung := s.hung
		if retry > 0 {
			hung = nil // the next attempt is soon in any case
		}
		select {
		case <-s.ctx.Done():
			timer.Stop()
			return
		case <-hung:
			timer.Stop()
			err = errHangs
			continue
		case <-timer.C:
		}
		f := s.start(true)
		if f == nil {
			return
		}
		<-f.done
		err = f.err
	}
}

// lately reports whether a token has caused a fetch in the last RefreshUnknown, so
// that none may now. mu is held.
func (s *keySet) lately(now time.Time) bool {
	if s.o.RefreshUnknown < 0 {
		return true
	}
	since := now.Sub(s.caused)
	return !s.caused.IsZero() && since >= 0 && since < s.o.RefreshUnknown
}

// due reports whether refresh has anything to do: a fetch that may be waited
// for is in progress, or one may begin. If not, the result of the last one is
// in keys.
func (s *keySet) due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return false
	case s.under != nil:
		return !s.under.isLate()
	}
	return !s.lately(s.o.Now())
}

// start returns the current fetch, or begins one. It returns nil after close,
// and for a token if another has caused a fetch lately. The fetch belongs to no
// request: a client that sends unknown keys and hangs up cannot keep new keys
// from arriving.
func (s *keySet) start(regular bool) *fetch {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch now := s.o.Now(); {
	case s.closed:
		return nil
	case s.under != nil:
		return s.under
	case !regular && s.lately(now):
		return nil
	case !regular:
		s.caused = now
	}
	f := &fetch{done: make(chan struct{}), late: make(chan struct{})}
	s.under = f
	late := time.AfterFunc(s.patience, func() { s.giveUp(f) })
	if s.hangs {
		close(f.late)
	}
	s.running.Go(func() {
		f.err = s.fetch()
		hung := !late.Stop()
		if f.err != nil && s.ctx.Err() == nil {
			said := "JWKS cannot be fetched; the last keys are used"
			if s.keys.Load() == nil {
				said = "JWKS cannot be fetched; it has never been, so tokens for its keys get 503"
			}
			s.o.Logger.ErrorContext(s.ctx, said, "url", s.shown, "error", f.err)
		}
		if hung && f.err == nil {
			f.err = errHangs
		}
		s.ended(hung)
		close(f.done)
	})
	return f
}

// giveUp ends the waiting for f, which took too long.
func (s *keySet) giveUp(f *fetch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.under != f {
		return // it has ended meanwhile, as ended has recorded
	}
	s.setHangs(true)
	if !f.isLate() {
		close(f.late)
	}
}

// ended records that the current fetch has ended, and whether it took too long.
func (s *keySet) ended(hung bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.under = nil
	s.setHangs(hung)
}

// setHangs keeps hangs and the signal for keepFresh consistent: while one is
// set, the other is there or keepFresh is about to try again. mu is held.
func (s *keySet) setHangs(hangs bool) {
	s.hangs = hangs
	select {
	case <-s.hung:
	default:
	}
	if hangs {
		s.hung <- struct{}{}
	}
}

// refresh waits for a fetch, until patience has passed since its start and at
// most as long as ctx lasts.
func (s *keySet) refresh(ctx context.Context) {
	f := s.start(false)
	if f == nil {
		return
	}
	select {
	case <-f.done:
	case <-ctx.Done():
	case <-f.late:
	}
}

// fetch stores the set if it is usable. One that equals the last is not stored:
// tokens verified with the last stay valid.
func (s *keySet) fetch() error {
	ctx, cancel := context.WithTimeout(s.ctx, fetchTime)
	defer cancel()
	body, err := s.get(ctx)
	if err != nil {
		return err
	}
	set, skipped, err := parseSet(body)
	if err != nil {
		return err
	}
	if len(skipped) > 0 {
		s.o.Logger.DebugContext(ctx, "keys of the JWKS are not used", "url", s.shown, "error", errors.Join(skipped...))
	}
	if old := s.keys.Load(); old == nil || !old.equal(set) {
		s.keys.Store(set)
	}
	return nil
}

func (s *keySet) get(ctx context.Context) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.o.JWKS, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/jwk-set+json, application/json")
	res, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", res.StatusCode)
	}
	if t := res.Header.Get("Content-Type"); !mayBeSet(t) {
		return nil, fmt.Errorf("a %.100q is no JWKS", t)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxSet+1))
	if err == nil && len(body) > maxSet {
		err = fmt.Errorf("the set is longer than %d bytes", maxSet)
	}
	return body, err
}

// mayBeSet reports whether a media type is JSON of any kind, or what file
// servers send for unknown types. A login page is neither.
func mayBeSet(contentType string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return contentType == ""
	}
	switch t {
	case "application/json", "text/json", "text/plain", "application/octet-stream", "binary/octet-stream":
		return true
	}
	return strings.HasSuffix(t, "+json")
}

// checkRedirect follows redirects only to addresses that JWKS itself could
// have, and from https only to https.
func (o *Options) checkRedirect(next func(*http.Request,
	[]*http.Request) error) func(*http.Request, []*http.Request) error {
	return func(r *http.Request, via []*http.Request) error {
		if via[len(via)-1].URL.Scheme == "https" && r.URL.Scheme != "https" || !o.trusted(r.URL) {
			return fmt.Errorf("a redirect to %q, which is not https", r.URL.Redacted())
		}
		if next != nil {
			return next(r, via)
		}
		if len(via) >= 5 {
			return errors.New("more than 5 redirects")
		}
		return nil
	}
}
