package successor

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
)

// This file is what the two processes tell each other, over a pair of sockets: a line of JSON for
// each message. The old process sends handover, and later two steps; the new one report.

// controlVar names the descriptor of the new process's end. The sockets follow it.
const controlVar = "CHERT_UPGRADE"

// handover is what the new process inherits.
type handover struct {
	Sockets []passed `json:"sockets"`
}

// passed describes sockets that listen on one address.
type passed struct {
	Network string `json:"network"`
	Address string `json:"address"`
	Number  int    `json:"number,omitempty"` // of systemd's descriptor
	Count   int    `json:"count"`
	Note    []byte `json:"note,omitempty"`
}

// report is the answer of the new process: that it is ready, or why it is not.
type report struct {
	Ready bool   `json:"ready,omitempty"`
	Error string `json:"error,omitempty"`
}

// step tells the new process, when it is ready, to accept connections, beside the old one, and
// that the old one does not any more, which ends the handover. The old one's end means both.
type step struct {
	Accept    bool `json:"accept,omitempty"`
	Confirmed bool `json:"confirmed,omitempty"`
}

// maxMessage bounds a message: the other process may be any program.
const maxMessage = 1 << 20

func send(w io.Writer, message any) error {
	b, err := json.Marshal(message)
	if err == nil {
		_, err = w.Write(append(b, '\n'))
	}
	return err
}

// receive reads a message. io.EOF: the other process has closed its end.
func receive(r *bufio.Reader, message any) error {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return json.Unmarshal(line, message)
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		case len(line) > maxMessage:
			return errors.New("the message is too long")
		}
	}
}
