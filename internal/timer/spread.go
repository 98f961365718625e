package timer

// Spread is how much earlier than others one of many like waits ends. Clients that have come
// together, or lost their network together, would otherwise expire in the same moment.
type Spread uint16

// maxSpread bounds the spread, in nanoseconds: operators set the time for idle connections a
// few seconds longer than that of the proxy before the server.
const maxSpread = 4e9

// SpreadOf returns the spread of a connection, from its peer's address and port: it is always
// the same for one, and even over those of one address.
func SpreadOf(peer string) Spread {
	h := uint32(2166136261) // FNV-1a
	for i := range len(peer) {
		h = (h ^ uint32(peer[i])) * 16777619
	}
	return Spread(h * 0x9e3779b1 >> 16)
}

// Of returns d, a time in nanoseconds, shortened by up to a tenth and at most 4 s.
func (s Spread) Of(d int64) int64 { return d - min(d/10, maxSpread)*int64(s)/65536 }
