package bridge

import (
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/exec"
)

// Edits are what middleware does to a response that comes from another server. A nil *Edits does
// nothing.
type Edits struct {
	kept  []wire.Field
	later []func(x *wire.Exchange)
}

// EditsOf takes those of x, nil if there are none.
func EditsOf(x *wire.Exchange) *Edits {
	if later := x.TakeLater(); x.HasKept() || len(later) > 0 {
		return &Edits{x.TakeKept(), later}
	}
	return nil
}

// Kept returns the fields that are added unless the response has one of the name; see
// wire.Exchange.Keep.
func (e *Edits) Kept() []wire.Field {
	if e == nil {
		return nil
	}
	return e.kept
}

// Later reports whether Change does anything.
func (e *Edits) Later() bool { return e != nil && len(e.later) > 0 }

// Change has x, which has the fields of another server's response of a status, changed.
func (e *Edits) Change(c *Client, x *wire.Exchange, status int) {
	x.SetElsewhere()
	x.SetStatus(status)
	e.call(c, x)
}

func (e *Edits) call(c *Client, x *wire.Exchange) {
	if !e.Later() {
		return
	}
	exec.Call(func() {
		for _, edit := range e.later {
			edit(x)
		}
	}, c.LogEnd)
}

// Instead returns r, for which no other server has responded, as the answer to a request with a method.
func (e *Edits) Instead(c *Client, method string, r *direct.Response) wire.Answer {
	x := new(wire.Exchange)
	x.Reset(wire.Request{Method: method})
	for _, k := range e.Kept() {
		x.Keep(wire.NewName(k.Name), k.Value)
	}
	r.ServeDirect((*direct.Exchange)(x))
	e.call(c, x)
	return x.Finish()
}
