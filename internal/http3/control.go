package http3

// MaxControl bounds the payload of frames of the control stream, in bytes. All of one has
// to be there before it means something.
const MaxControl = 1 << 10

// Control reads a client's control stream (RFC 9114 section 6.2.1), whose bytes come in any
// parts. The zero value is ready. It keeps the payload of one frame, MaxControl bytes at
// most.
type Control struct {
	frames  Reader
	payload []byte
	begun   bool // the first frame has been read
}

// Next reads b up to the end of a frame that has a meaning. n is how many bytes it has read,
// which are all of b if ok is false: no such frame has ended yet. Frames without a meaning
// are passed over; a caller that bounds useless traffic counts n. The first frame is
// SETTINGS, and no other one is. payload is valid until the next call. An error is a
// ConnError.
func (c *Control) Next(b []byte) (h Header, payload []byte, n int, ok bool, err error) {
	for {
		part, used := c.frames.Next(b[n:])
		h = c.frames.Header()
		switch part {
		case PartNone:
			return Header{}, nil, n + used, false, nil
		case PartHeader:
			if err := c.begin(h); err != nil {
				return Header{}, nil, n + used, false, err
			}
		case PartPayload:
			if h.Known() {
				c.payload = append(c.payload, b[n:n+used]...)
			}
		}
		n += used
		if c.frames.Left() == 0 && h.Known() {
			return h, c.payload, n, true, nil
		}
	}
}

// begin judges the header of a frame.
func (c *Control) begin(h Header) error {
	c.payload = c.payload[:0]
	err := h.CheckControl()
	switch settings := h.Type == FrameSettings; {
	case !c.begun && !settings:
		// RFC 9114 section 6.2.1: any other type is H3_MISSING_SETTINGS.
		return errNotFirst
	case c.begun && settings:
		return errSecond // section 7.2.4
	}
	c.begun = true
	return err
}
