//go:build linux

package sim

import "strconv"

// asked is a request whose response has not arrived.
type asked struct {
	id     uint64
	kind   string
	method string
	size   int // of the response's body
	read   int // X-Read, -1 without
	echo   bool
	closes bool // the connection ends after its response
	cut    bool // the handler aborts
	file   *fetch
}

// drawn is a request as the dice want it, for any version of HTTP.
type drawn struct {
	asked
	path    string
	content []byte
}

// draw makes a request; see served.handle for what its path says.
func (p *peer) draw(id uint64) drawn {
	kind := "quick"
	if p.d.OneIn(6) {
		kind = kinds[p.d.IntN(len(kinds))]
	}
	if kind == "abort" && (p.calm || !p.d.OneIn(20)) {
		kind = "quick"
	}
	r := drawn{asked: asked{id: id, kind: kind, method: "GET", size: p.size(), read: -1}}
	part := p.d.IntN(3000)
	switch kind {
	case "echo", "sum", "some", "late":
		n := p.size()
		r.method, r.content = "POST", body(id, n)
		if kind == "echo" {
			r.size, r.echo = n, true
		}
		if kind == "sum" {
			r.read = n
		}
		part = p.d.IntN(n + 1)
	case "pieces":
		part = r.size/(1+p.d.IntN(10)) + 1
	case "abort":
		r.cut = true
	default:
		if p.d.OneIn(20) {
			r.method = "HEAD"
		}
	}
	b := append(make([]byte, 0, 64), '/')
	b = append(b, kind...)
	b = append(b, '/')
	b = strconv.AppendUint(b, id, 10)
	b = append(b, '/')
	b = strconv.AppendInt(b, int64(r.size), 10)
	b = append(b, '/')
	r.path = string(strconv.AppendInt(b, int64(part), 10))
	return r
}

var kinds = [...]string{"quick", "quick", "quick", "quick", "quick", "quick", "slow", "pieces", "echo", "sum", "some", "late", "gone", "abort"}

func (p *peer) size() int {
	switch n := p.d.IntN(1024); {
	case n == 0:
		return p.d.IntN(maxBody)
	case n < 32:
		return p.d.IntN(10_000)
	case n < 128:
		return 0
	}
	return p.d.IntN(200)
}
