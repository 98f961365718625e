package bridge

import "sync/atomic"

// AltSvc is the field that tells clients of the server's HTTP/3 (RFC 7838), as it is encoded. It
// may change while connections use it. The zero value and nil are no field.
type AltSvc struct{ fields atomic.Pointer[altFields] }

type altFields struct{ line, block []byte }

var noFields altFields

// Set makes it a line of HTTP/1 and a field of a block of HTTP/2. They must not be changed then.
func (a *AltSvc) Set(line, block []byte) { a.fields.Store(&altFields{line, block}) }

// Line returns the line for HTTP/1, with its end.
func (a *AltSvc) Line() []byte { return a.get().line }

// Block returns the field for HTTP/2.
func (a *AltSvc) Block() []byte { return a.get().block }

func (a *AltSvc) get() *altFields {
	if a != nil {
		if f := a.fields.Load(); f != nil {
			return f
		}
	}
	return &noFields
}
