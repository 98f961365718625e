package bridge

import (
	"net/http"
	"sync"
	"unsafe"
)

// This file is Server.ReuseRequests: all that a request is made of, kept for
// another one.

// block is an exchange and what else of it is kept.
type block struct {
	x         exchange
	body      body
	head      []byte // what the request's strings are parts of
	header    http.Header
	resHeader http.Header
	values    []string
}

var blocks = sync.Pool{New: func() any {
	return &block{header: make(http.Header), resHeader: make(http.Header)}
}}

const (
	// keepHead and keepFields bound what a block keeps.
	keepHead   = 8 << 10
	keepFields = 64
)

// take makes the block ready for a request with the given head, and returns
// the head's string. It is that only until free.
func (b *block) take(head []byte) (*exchange, string) {
	b.head = append(b.head[:0], head...)
	b.x.res.header = b.resHeader
	return &b.x, unsafe.String(unsafe.SliceData(b.head), len(b.head))
}

// free keeps the block, unless somebody may still hold on to it: who has asked
// for the context's end may be told of it later.
func (b *block) free() {
	b.x.ctx.mu.Lock()
	watched := b.x.ctx.cares != nil
	b.x.ctx.mu.Unlock()
	if watched || cap(b.head) > keepHead || len(b.header) > keepFields || len(b.resHeader) > keepFields {
		return
	}
	clear(b.header)
	clear(b.resHeader)
	clear(b.values)
	b.x, b.body = exchange{}, body{}
	blocks.Put(b)
}
