package section

import (
	"iter"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/pack"
	"github.com/chert-http/chert/internal/view"
)

// This file is the fast path: a request that is answered from its decoded fields.

// Fields is a decoded field section, as decoders fill it and as direct handlers see it.
type Fields struct {
	pack.Fields
	all iter.Seq2[[]byte, []byte] // each, as a value that is made once
}

// Init prepares f, which must not be moved afterwards.
func (f *Fields) Init() { f.all = f.Each }

// Direct makes the request for the direct handler h. ahead: the body has not arrived, and only a handler that
// takes requests ahead of it is called; otherwise there is none. ok is false for what asks for something
// else than an answer. With MaxHandlers the plain way knows how to wait. major is the version of HTTP.
func Direct(
	c *bridge.Client, h direct.Handler, f *Fields, t *Target, major uint8, ahead bool,
) (req wire.Request, ok bool) {
	path := f.Fields.Get(t.Path)
	if c.Slots != nil || t.Crumbs > 1 || len(path) == 0 || path[0] != '/' {
		return req, false
	}
	switch {
	case !ahead && (t.Expect || t.Trailer):
		return req, false
	case ahead && (t.Protocol.Len() > 0 || c.BodiesRead.Load() || !wire.TakesAhead(h)):
		return req, false
	}
	peer := c.Link.Peer()
	req = wire.Request{
		Method: bridge.MethodOf(f.Fields.Get(t.Method)), Target: path, Host: f.Fields.Get(t.Authority),
		RemoteAddr: peer.RemoteAddr, PeerIP: peer.IP, TLS: c.HasTLS(), Major: major, Fields: f, Local: c,
		Ahead: ahead, Length: t.Length,
	}
	if len(req.Host) == 0 {
		req.Host = f.Fields.Get(t.Host)
	}
	return req, bridge.SplitTarget(&req)
}

// Get implements wire.Fields.
func (f *Fields) Get(name string) []byte {
	v, _ := f.First(name)
	return v
}

// First implements wire.Fields.
func (f *Fields) First(name string) (value []byte, n int) {
	id := pack.LookupFold(name)
	if id != 0 && id <= pack.IDStatus {
		return nil, 0
	}
	for i := range f.List {
		h := &f.List[i]
		if h.ID != id || id == pack.IDHost || id == 0 && !pack.FoldEqual(f.Fields.Get(h.Name), name) {
			continue
		}
		if n == 0 {
			value = f.Fields.Get(h.Value)
		}
		n++
	}
	return value, n
}

// All implements wire.Fields.
func (f *Fields) All() iter.Seq2[[]byte, []byte] { return f.all }

// Each calls yield with each field that is no pseudo-field.
func (f *Fields) Each(yield func(name, value []byte) bool) {
	for i := range f.List {
		h := &f.List[i]
		name := f.Fields.Get(h.Name)
		switch {
		case h.ID == pack.IDHost || h.ID != 0 && h.ID <= pack.IDStatus:
			continue
		case h.ID != 0:
			name = view.Bytes(h.ID.Name())
		}
		if !yield(name, f.Fields.Get(h.Value)) {
			return
		}
	}
}
