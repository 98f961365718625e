package http3

// NewFrugal returns HTTP/3 with what clients may do in vain that does not grow with time.
func NewFrugal() *HTTP3 {
	h := New(nil)
	h.frugal = true
	return h
}
