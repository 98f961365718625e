package bridge

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/tally"
)

func (w hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	var o Outcome
	defer o.notify(0) // what follows is not the server's response
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.hijacked():
		return nil, nil, http.ErrHijacked
	case w.Done:
		panic("net/http: Hijack called after ServeHTTP finished")
	}
	w.noContinue()
	if w.wroteHeader {
		w.flushStage()
	}
	if err := w.flush(); err != nil {
		return nil, nil, err
	}
	hook := w.x.c.Link.NetConn()
	var nc net.Conn
	var rest []byte
	// Earlier answers may wait for the client, and the loop for life: see Gone.
	err := w.x.c.Link.Send(&conn.Write{Wait: conn.ForAll})
	if err == nil {
		err = w.x.cede(func() (err error) {
			nc, rest, err = w.x.c.Link.Lent().Hijack()
			return err
		})
	}
	if err != nil {
		// RFC 9110 section 15.2.2: what follows a 101 is in the new protocol, so it must
		// not be read as requests.
		if w.wroteHeader && w.Status == http.StatusSwitchingProtocols {
			w.CloseAfter.Store(true)
		}
		return nil, nil, fmt.Errorf("chert: hijack: %w", err)
	}
	w.taken.Store(&nc)
	if w.wroteHeader {
		w.status = int32(w.Status)
	}
	w.x.accountEarly()
	w.x.c.Link.Tally().Add(false, tally.Hijacked, 1)
	w.x.m.Release()
	o = w.end()
	w.x.c.setStateOf(hook, http.StateHijacked)
	return nc, hijackBuffers(nc, rest), nil
}

// hijackBuffers makes the buffered reader and writer that Hijack promises.
// The bytes that were already received are in the reader's buffer, where
// Buffered reports them.
func hijackBuffers(nc net.Conn, rest []byte) *bufio.ReadWriter {
	var r io.Reader = nc
	if len(rest) > 0 {
		r = io.MultiReader(bytes.NewReader(rest), nc)
	}
	br := bufio.NewReaderSize(r, max(4<<10, len(rest)))
	br.Peek(len(rest))
	return bufio.NewReadWriter(br, bufio.NewWriter(nc))
}
