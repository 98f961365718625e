package wsframe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"github.com/chert-http/chert/internal/testing/gorillatest"
)

// oracle is what gorilla/websocket makes of b, in received's form.
func oracle(t *testing.T, b []byte) (lines []string, err error) {
	c := gorillatest.Received(t, b)
	c.SetPingHandler(func(s string) error {
		lines = append(lines, fmt.Sprintf("9 %q", s))
		return nil
	})
	c.SetPongHandler(func(s string) error {
		lines = append(lines, fmt.Sprintf("10 %q", s))
		return nil
	})
	for {
		op, p, err := c.ReadMessage()
		if err != nil {
			return lines, err
		}
		if op == websocket.TextMessage && !utf8.Valid(p) {
			return lines, errUTF8 // gorilla leaves this to its user
		}
		lines = append(lines, fmt.Sprintf("%d false %q", op, p))
	}
}

// FuzzReader compares the Reader with gorilla/websocket's, with all bytes at once
// and one at a time.
func FuzzReader(f *testing.F) {
	f.Add(join(client(Text, false, false, "Hel"), client(Ping, true, false, "p"), client(Continuation, true, false, "lo")))
	f.Add(client(Close, true, false, "\x03\xe8bye"))
	f.Add(client(Close, true, false, "\x03\xf6bye")) // 1014, which gorilla does not know
	f.Add(client(Binary, true, false, string(make([]byte, 200))))
	f.Add([]byte{0x81, 0xfe, 0x80, 0x00, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, b []byte) {
		want, werr := oracle(t, b)
		for _, size := range []int{1, len(b) + 1} {
			got, err := received(new(Reader), new(Limits), bytes.Clone(b), size)
			// gorilla ends with a Close frame, and returns what is in it.
			closed, code := false, Code(0)
			for i, line := range got {
				if closed = line[0] == '8'; closed {
					var p []byte
					fmt.Sscanf(line, "8 %q", &p)
					if code, _, err = ParseClose(p); err == nil {
						err = io.EOF
					}
					got = got[:i]
					break
				}
			}
			switch {
			case err == errLength || err == errCloseLength:
				return // gorilla accepts lengths that are not minimal, and a Close frame of one byte
			case code == CodeBadGateway:
				return // registered with IANA after RFC 6455, and refused by gorilla
			case err == errUTF8:
				return // found before the message's end, which gorilla may not have got to
			case err != nil && websocket.IsCloseError(werr, websocket.CloseAbnormalClosure):
				return // found before gorilla has missed the rest of the frame
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("by %d: %q %v\nwant %q %v", size, got, err, want, werr)
			}
			var ce *websocket.CloseError
			ended := errors.Is(werr, io.EOF) || errors.As(werr, &ce)
			if (err != nil && err != io.EOF) == ended {
				t.Fatalf("by %d: %q: error %v, want %v", size, b, err, werr)
			}
		}
	})
}
