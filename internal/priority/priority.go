package priority

import "bytes"

// Priority is what a client has said of how urgent a response is (RFC 9218 section 4).
type Priority struct {
	Urgency     uint8 // 0 to 7; lower is sooner
	Incremental bool  // parts of the response are of use
}

// Default is that of a request without one.
var Default = Priority{Urgency: 3}

// Parse parses the value of a priority field. Of what is unknown or invalid it
// takes the default.
func Parse(v []byte) Priority {
	p := Default
	for len(v) > 0 {
		var member []byte
		member, v, _ = bytes.Cut(v, []byte{','})
		member, _, _ = bytes.Cut(member, []byte{';'}) // parameters
		key, value, has := bytes.Cut(bytes.Trim(member, " \t"), []byte{'='})
		switch string(key) {
		case "u":
			if len(value) == 1 && '0' <= value[0] && value[0] <= '7' {
				p.Urgency = value[0] - '0'
			}
		case "i":
			p.Incremental = !has || string(value) == "?1"
		}
	}
	return p
}
