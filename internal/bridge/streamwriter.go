package bridge

import (
	"io"
	"net/http"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/takeover"
)

// StreamWriter is Response for requests that share their connection with others: it
// is no http.Hijacker, and an http.Pusher that does not push, as net/http's is for
// HTTP/2.
type StreamWriter Response

func (w *StreamWriter) res() *Response { return (*Response)(w) }

// Header, Write, WriteHeader and the following are Response's.
func (w *StreamWriter) Header() http.Header                   { return w.res().Header() }
func (w *StreamWriter) Write(p []byte) (int, error)           { return w.res().Write(p) }
func (w *StreamWriter) WriteString(s string) (int, error)     { return w.res().WriteString(s) }
func (w *StreamWriter) WriteHeader(code int)                  { w.res().WriteHeader(code) }
func (w *StreamWriter) Flush()                                { w.res().FlushError() }
func (w *StreamWriter) FlushError() error                     { return w.res().FlushError() }
func (w *StreamWriter) SetReadDeadline(t time.Time) error     { return w.res().SetReadDeadline(t) }
func (w *StreamWriter) SetWriteDeadline(t time.Time) error    { return w.res().SetWriteDeadline(t) }
func (w *StreamWriter) EnableFullDuplex() error               { return w.res().EnableFullDuplex() }
func (w *StreamWriter) CloseNotify() <-chan bool              { return w.res().CloseNotify() }
func (w *StreamWriter) ReadFrom(src io.Reader) (int64, error) { return w.res().ReadFrom(src) }
func (w *StreamWriter) SendFile(f direct.File) error          { return w.res().SendFile(f) }
func (w *StreamWriter) Watch(watcher wire.Watcher) bool       { return w.res().Watch(watcher) }
func (w *StreamWriter) Arrived() (time.Time, bool)            { return w.res().Arrived() }
func (w *StreamWriter) TakeOver(begin func(takeover.Link) takeover.Session) error {
	return w.res().TakeOver(begin)
}

// Budget implements takeover.Budgeted.
func (w *StreamWriter) Budget() *takeover.Budget             { return w.res().Budget() }
func (w *StreamWriter) Push(string, *http.PushOptions) error { return http.ErrNotSupported }

var (
	_ takeover.Writer     = (*StreamWriter)(nil)
	_ takeover.Budgeted   = (*StreamWriter)(nil)
	_ http.Pusher         = (*StreamWriter)(nil)
	_ http.ResponseWriter = (*StreamWriter)(nil)
)

// Take makes a client of a connection that another session has begun, and shown
// to the server's hooks.
func (c *Client) Take() Client {
	return Client{Config: c.Config, Link: c.Link, more: c.more, Waits: c.Waits}
}

// DateValue is the value of the Date field as it is at now; see AppendDate.
func DateValue(now int64) string {
	d := lastDate.Load()
	if d == nil || now < d.from || now >= d.until {
		d = newDate()
		lastDate.Store(d)
	}
	return d.line[len("Date: ") : len(d.line)-len("\r\n")]
}
