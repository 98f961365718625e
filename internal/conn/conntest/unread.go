package conntest

import (
	"bytes"
	"strings"

	"github.com/chert-http/chert/internal/conn"
)

// testUnread: what user code has read too much of is the next reader's, before
// all that follows it.
func testUnread(x *suite, pooled bool) {
	s := &script{only: "read", line: inUser(pooled, func(s *script, _ string) conn.Next {
		p := make([]byte, 64<<10)
		n := 0
		for !bytes.Contains(p[:n], []byte("!")) {
			m, err := s.Lent().Read(p[n:])
			if n += m; err != nil {
				x.Error(err)
				return conn.Close
			}
			// All of it back, and then again.
			s.Lent().Unread(p[n-m : n])
			k, err := s.Lent().Read(p[n-m : n])
			if k != m || err != nil {
				x.Errorf("%d of %d bytes again, %v", k, m, err)
			}
		}
		at := bytes.IndexByte(p[:n], '!') + 1
		mid := (at + n) / 2
		s.Lent().Unread(p[mid:n])
		s.Lent().Unread(p[at:mid]) // before that
		s.Lent().Unread(nil)
		took := string(p[:at])
		clear(p) // it was copied
		s.Write([]byte("took "+took+"\n"), nil)
		return conn.More
	})}
	c := x.open(Options{}, s)
	long := strings.Repeat("long", 5000)
	for _, body := range []string{"", "a", long} {
		in := "read\n" + body + "!x\nread\n!read\n" + body + "!" + body + "\ny\n"
		want := "took " + body + "!\nx\ntook !\ntook " + body + "!\n" + body + "\ny\n"
		c.Send(in)
		c.Want(want)
		if len(in) < 100 {
			for i := range in {
				c.Send(in[i : i+1])
			}
			c.Want(want)
		}
	}
}
