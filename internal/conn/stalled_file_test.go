//go:build linux || darwin

package conn

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/chert-http/chert/internal/outbox"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// A file that ends early, and one that is none.
func TestSendFileErrors(t *testing.T) {
	t.Parallel()
	file := servertest.File(t, stalledBytes)
	folder, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	gone := servertest.File(t, stalledBytes)
	gone.Close()
	for _, tt := range []struct {
		why       string
		file      *os.File
		offset, n int64
		sent      int
		err       error // nil, or what it is, or errAny
	}{
		{"whole", file, 0, 100, 100, nil},
		{"the end", file, stalledSize - 10, 10, 10, nil},
		{"nothing", file, 5, 0, 0, nil},
		{"beyond the end", file, stalledSize - 10, 11, 10, io.ErrUnexpectedEOF},
		{"after the end", file, stalledSize + 1, 1, 0, io.ErrUnexpectedEOF},
		{"far after the end", file, 1 << 40, 1, 0, io.ErrUnexpectedEOF},
		{"a folder", folder, 0, 100, 0, errAny},
		{"closed", gone, 0, 100, 0, errAny},
	} {
		for _, quick := range []bool{true, false} {
			r := newRig(t, Limits{})
			h := &holder{t: t}
			c := r.open(&fake{quick: quick, serve: func(f *fake, line string) Next {
				err := f.Send(&Write{A: []byte("head"), File: tt.file, Offset: tt.offset, Len: tt.n, Holder: h})
				if !errors.Is(err, tt.err) && (err == nil || tt.err != errAny) {
					t.Errorf("%s: got %v", tt.why, err)
				}
				if n := h.releases.Load(); n != 1 {
					t.Errorf("%s: released %d times", tt.why, n)
				}
				return Close
			}})
			c.Send("x\n")
			want := "head"
			if tt.sent > 0 {
				want += string(stalledBytes[tt.offset:][:tt.sent])
			}
			if b, err := io.ReadAll(c); string(b) != want {
				t.Errorf("%s: %d bytes came, %v", tt.why, len(b), err)
			}
		}
	}
}

var errAny = errors.New("any")

// A file that shrinks while its client makes it wait ends the connection with
// what there was.
func TestStalledFileShrinks(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	s := newStalling(t)
	c := r.open(s.fake)
	c.Send("file 8388608\n")
	r.stuck(s.fake)
	if err := s.file.Truncate(stalledSize / 2); err != nil {
		t.Fatal(err)
	}
	c.Want("a file: " + string(stalledBytes[:stalledSize/2]))
	c.Ended()
	servertest.Await(t, s.closed, "Closed")
	s.released()
}

// Check is called before sending goes on, and not while nothing has waited.
func TestStalledCheck(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	s := newStalling(t)
	c := r.open(s.fake)
	c.Send("file 1000\nfile 2000\n")
	wantAnswer(c, "file 1000")
	wantAnswer(c, "file 2000")
	if n := s.checks(); n != 0 {
		t.Errorf("%d checks of what has not waited", n)
	}
	c.Send("file 8388608\n")
	r.stuck(s.fake)
	wantAnswer(c, "file 8388608")
	if s.checks() == 0 {
		t.Error("no checks")
	}
	s.released()
}

// No more of a file than FileTurn goes out in one go, so that others have their
// turn, also with lines after it.
func TestSendTurn(t *testing.T) {
	t.Parallel()
	if !sys.HaveSendfile {
		t.Skip("no sendfile here")
	}
	for _, next := range []string{"", "next\nfile 100\n"} {
		r := newRig(t, Limits{})
		s := newStalling(t)
		c := r.open(s.fake)
		most, at := int64(0), int64(stalledSize)
		turns := 0
		watch := func() error {
			// Under the lease of the turn that goes on.
			left, _ := s.Out().Unsent()
			most, at = max(most, at-left), left
			turns++
			return nil
		}
		s.check.Store(&watch)
		c.Send("file 8388608\n" + next)
		wantAnswer(c, "file 8388608")
		if next != "" {
			c.Want("next\n")
			wantAnswer(c, "file 100")
		}
		s.released()
		if turns < stalledSize/outbox.FileTurn-1 || most > outbox.FileTurn {
			t.Errorf("%d turns, the largest sent %d bytes", turns, most)
		}
	}
}
