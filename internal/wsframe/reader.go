package wsframe

// Limits bound the messages of a Reader.
type Limits struct {
	// Message is the largest message in bytes, and Deflated the largest on the wire
	// of one that is compressed; 0 means no limit.
	Message, Deflated int64
	// Fragments is how many frames a message may have, empty ones included; 0
	// means no limit. One more is permitted for each Earns bytes of those before; 0
	// means for none.
	Fragments int
	Earns     int64
}

// Reader is the state of the frames that one side of a connection receives. The
// zero Reader is that of a server without extensions.
type Reader struct {
	// Client: the frames come from a server, so they are not masked.
	Client bool
	// Deflate: permessage-deflate was negotiated, so RSV1 marks messages that are
	// compressed.
	Deflate bool

	// op has the opcode of the message that is being received, and 0 between messages, with
	// the bits of headers: rsv1Bit of its first frame, and finBit of the current one.
	op        uint8
	text      UTF8
	key       uint32 // of the rest of the current frame
	fragments uint32
	left      int64 // of the current frame
	size      int64 // of the message's frames so far, as their headers say
}

// opcode is that of the message that is being received.
func (r *Reader) opcode() Opcode { return Opcode(r.op &^ (finBit | rsv1Bit)) }

func (r *Reader) compressed() bool { return r.op&rsv1Bit != 0 }

// A Piece is a part of a message, or a control frame.
type Piece struct {
	Op Opcode // never Continuation
	// Data is the next part of the message's payload, which may be empty, or all of a
	// control frame's. It is part of the buffer that was passed to Next.
	Data []byte
	// First and Last: the message begins and ends with this piece.
	First, Last bool
	// Compressed: the message is (RFC 7692 section 6).
	Compressed bool
}

// Next consumes the first n bytes of b and returns what they are. n is 0 if more
// bytes are needed. Text is checked as it comes, unless it is compressed. An
// error is an *Error, and final.
func (r *Reader) Next(b []byte, l *Limits) (p Piece, n int, err error) {
	first := false
	if r.left == 0 {
		h, k, err := ParseHeader(b)
		if err != nil {
			return p, 0, err
		}
		if err := r.check(&h, b); err != nil || k == 0 {
			return p, 0, err
		}
		if h.Op.Control() {
			end := k + int(h.Length)
			if len(b) < end {
				return p, 0, nil
			}
			Mask(b[k:end], h.Key)
			return Piece{Op: h.Op, Data: b[k:end], First: true, Last: true}, end, nil
		}
		if first, err = r.begin(&h, l); err != nil {
			return p, 0, err
		}
		n = k
	}
	data := b[n:]
	if int64(len(data)) > r.left {
		data = data[:r.left]
	}
	n += len(data)
	r.key = Mask(data, r.key)
	r.left -= int64(len(data))
	last := r.op&finBit != 0 && r.left == 0
	p = Piece{Op: r.opcode(), Data: data, First: first, Last: last, Compressed: r.compressed()}
	if p.Op == Text && !p.Compressed && (!r.text.Write(data) || p.Last && !r.text.Complete()) {
		// RFC 6455 section 8.1: the connection MUST be failed.
		return Piece{}, 0, errUTF8
	}
	if p.Last {
		r.op, r.text = 0, UTF8{}
	}
	return p, n, nil
}

// check refuses a header as soon as the bytes that show it are there.
func (r *Reader) check(h *Header, b []byte) error {
	switch {
	case len(b) == 0:
	case h.RSV1 && (!r.Deflate || h.Op == Continuation):
		return errRSV // RFC 7692 section 6: only of a message's first frame
	case h.Op == Continuation && r.op == 0:
		return errNoMessage
	case h.Op != Continuation && !h.Op.Control() && r.op != 0:
		return errUnfinished // RFC 6455 section 5.4
	case len(b) == 1:
	case !h.Masked && !r.Client:
		return errUnmasked // section 5.1
	case h.Masked && r.Client:
		return errMasked
	}
	return nil
}

// begin begins a frame of a message.
func (r *Reader) begin(h *Header, l *Limits) (first bool, err error) {
	if first = h.Op != Continuation; first {
		r.op, r.size, r.fragments = uint8(h.Op), 0, 0
		if h.RSV1 {
			r.op |= rsv1Bit
		}
	}
	limit := l.Message
	if r.compressed() {
		limit = l.Deflated
	}
	// The subtraction cannot overflow: size is at most the limit.
	if limit > 0 && h.Length > limit-r.size {
		return first, errTooBig
	}
	if r.fragments++; l.Fragments > 0 && int64(r.fragments) > int64(l.Fragments)+r.earned(l) {
		return first, errFragments
	}
	r.size += h.Length
	if r.op &^= finBit; h.Fin {
		r.op |= finBit
	}
	r.key, r.left = h.Key, h.Length
	return first, nil
}

// earned returns how many more frames the bytes of the message permit.
func (r *Reader) earned(l *Limits) int64 {
	if l.Earns <= 0 {
		return 0
	}
	return r.size / l.Earns
}
