package link

import "time"

// Quiet is embedded by Sessions: its methods change nothing, and say that the Session does not wait for a request.
type Quiet struct{}

func (Quiet) Writable() Next      { return More }
func (Quiet) Expired() Next       { return More }
func (Quiet) Drain(int64) Next    { return More }
func (Quiet) Since(int64) int64   { return -1 }
func (Quiet) Late(time.Duration)  {}
func (Quiet) PeerGone(reset bool) {}
