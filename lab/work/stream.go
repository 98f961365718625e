package work

import "encoding/json"

// StreamPiece is how much handlers of large bodies read and write at a time, and the size of chunks sent to them: what
// io.Copy has, and so most programs.
const StreamPiece = 32 << 10

// Reads is what handlers have read of bodies.
type Reads struct {
	Reads int64 `json:"reads"` // calls
	Bytes int64 `json:"bytes"`
}

// ReadsJSON encodes them.
func ReadsJSON(reads, bytes int64) ([]byte, error) { return json.Marshal(Reads{reads, bytes}) }
