package websocket

import (
	"unicode/utf8"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/wsdeflate"
	"github.com/chert-http/chert/internal/wsframe"
)

// inlineInflate is how much a message may become, in bytes, for it to be inflated on a
// loop: others wait meanwhile, and a small message can become a large one.
// inlineDeflated is how large it may be before: empty blocks take time and become nothing.
const (
	inlineInflate  = 32 << 10
	inlineDeflated = inlineInflate / deflatedCosts
	// deflatedCosts is how many bytes that come out of a message take as long as one of
	// such blocks.
	deflatedCosts = 8
)

// inflate inflates the message. later reports that it is too large for a loop.
func (s *session) inflate(onLoop bool) (later bool, _ *wsframe.Error) {
	d, limit, data := s.deflate, s.h.limits.Message, s.message()
	var window *wsdeflate.Window
	if !d.params.ClientNoTakeover {
		window = &d.in
	}
	if onLoop && len(data) > inlineDeflated {
		return true, nil
	}
	short := onLoop && (limit == 0 || limit > inlineInflate)
	if short {
		limit = inlineInflate
	}
	b := buf.Get(2 * len(data))
	out, err := wsdeflate.Inflate(b.B, data, window, limit)
	b.B = out
	s.weight = uint8(min(int(s.weight)+(len(out)+deflatedCosts*len(data))/(inlineInflate/batch), batch))
	if err == nil && (s.typ != TypeText || utf8.Valid(out)) {
		if window != nil {
			window.Add(out, d.params.ClientBits)
		}
		s.release()
		s.msg, s.packed = b, false
		return false, nil
	}
	b.Release()
	switch {
	case err == nil:
		return false, &wsframe.Error{Code: wsframe.CodeInvalid, Reason: "invalid UTF-8"}
	case err != wsdeflate.ErrTooBig:
		return false, &wsframe.Error{Code: wsframe.CodeInvalid, Reason: err.Error()}
	case short:
		return true, nil
	}
	return false, &wsframe.Error{Code: wsframe.CodeTooBig, Reason: err.Error()}
}
