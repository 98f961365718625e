package origin

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestMain(m *testing.M) { servertest.Main(m, servertest.UseTCP) }

// TestUpload reads bodies by two cursors, of which the first stops after some bytes.
func TestUpload(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name   string
		body   string
		err    error // after body; nil: io.EOF
		length int64 // -1: not known; -2: nor is Fill called
		most   int
		first  int // bytes that the first cursor reads before it is closed
		gone   bool
		want   string // of the second
	}{
		{"held", "abc", nil, 3, 10, 3, false, "abc EOF"},
		{"just held", "abc", nil, 3, 3, 2, false, "abc EOF"},
		{"length not known", "abc", nil, -2, 10, 3, false, "abc EOF"},
		{"read by Fill, length not known", "abc", nil, -1, 10, 3, false, "abc EOF"},
		{"too long", "abcdef", nil, 6, 3, 6, true, ""},
		{"too long, but not read so far", "abcdef", nil, 6, 3, 1, false, "abcdef EOF"},
		{"nothing held", "abc", nil, -2, 0, 1, true, ""},
		{"broken", "abc", broken, -2, 10, 3, false, "abc broken"},
		{"empty", "", nil, -2, 10, 0, false, " EOF"},
	} {
		for name, wrap := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "with its end": iotest.DataErrReader,
		} {
			t.Run(c.name+", "+name, func(t *testing.T) {
				body := io.Reader(strings.NewReader(c.body))
				if c.err != nil {
					body = io.MultiReader(body, iotest.ErrReader(c.err))
				}
				u := NewUpload(wrap(body), max(c.length, -1), c.most)
				defer u.Stop(func() error { return nil })
				if c.length > -2 {
					if _, err := u.Fill(); err != nil {
						t.Fatal(err)
					}
				}
				first := u.Cursor()
				if _, err := io.ReadFull(first, make([]byte, c.first)); err != nil {
					t.Fatal(err)
				}
				first.Close()
				first.Close()
				if u.Gone() != c.gone {
					t.Errorf("gone: %v", u.Gone())
				}
				if c.gone {
					return
				}
				second := u.Cursor()
				defer second.Close()
				b, err := io.ReadAll(second)
				if err == nil {
					err = io.EOF
				}
				if got := string(b) + " " + err.Error(); got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		}
	}
}

// TestUploadBlocked: a cursor that waits for the client ends by Close, and the reader by Stop.
func TestUploadBlocked(t *testing.T) {
	pr, pw := io.Pipe()
	u := NewUpload(pr, -1, 10)
	c := u.Cursor()
	got := make(chan error)
	go func() {
		_, err := c.Next()
		got <- err
	}()
	c.Close()
	if err := servertest.Await(t, got, "the cursor"); err != errStopped {
		t.Error(err)
	}
	u.Cursor().Close()
	stopped := make(chan bool)
	go func() {
		u.Stop(pw.Close)
		close(stopped)
	}()
	servertest.Await(t, stopped, "the reader")
}

// TestUploadClosed: a cursor that has been closed reads nothing and starts no reader, which Stop could not end any more.
// An http.Transport reads when the response has ended already.
func TestUploadClosed(t *testing.T) {
	for _, most := range []int{0, 10} {
		u := NewUpload(strings.NewReader("abc"), 3, most)
		if most > 0 {
			u.Fill()
		}
		c := u.Cursor()
		c.Close()
		u.Stop(func() error { return nil })
		if b, err := c.Next(); err != errStopped || u.Waits() {
			t.Errorf("%d: %q, %v, a reader: %v", most, b, err, u.Waits())
		}
	}
}

// idling is a Reader that returns nothing before each byte.
type idling struct {
	r    io.Reader
	idle bool
}

func (i *idling) Read(p []byte) (int, error) {
	if i.idle = !i.idle; i.idle {
		return 0, nil
	}
	return i.r.Read(p[:1])
}

// TestUploadIdling: a Read that returns nothing, not even an error, is none.
func TestUploadIdling(t *testing.T) {
	for _, most := range []int{0, 10} {
		u := NewUpload(&idling{r: strings.NewReader("abc")}, -1, most)
		got := make(chan string, 1)
		go func() {
			b, err := io.ReadAll(u.Cursor())
			got <- fmt.Sprintf("%s %v", b, err)
		}()
		if got := servertest.Await(t, got, "the body"); got != "abc <nil>" {
			t.Errorf("%d: %s", most, got)
		}
		u.Stop(func() error { return nil })
	}
}

// TestUploadLastByte: the last byte of a body with a length comes when the body has ended, and not at all if that
// was malformed.
func TestUploadLastByte(t *testing.T) {
	malformed := errors.New("malformed")
	for _, c := range []struct {
		name string
		more string // after "abc"
		err  error  // after that
		want string
	}{
		{"ended", "", io.EOF, "abc EOF"},
		{"malformed", "", malformed, "ab malformed"},
		{"too long", "d", io.EOF, "abcd EOF"},
		{"too long and malformed", "d", malformed, "abc malformed"},
	} {
		for name, wrap := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "with its end": iotest.DataErrReader,
		} {
			for most := -1; most < 3; most++ { // -1: nothing is held, nor is Fill called
				t.Run(fmt.Sprint(c.name, ", ", name, ", ", most), func(t *testing.T) {
					// Each Read is of one part alone.
					body := io.MultiReader(strings.NewReader("abc"), strings.NewReader(c.more), iotest.ErrReader(c.err))
					u := NewUpload(wrap(body), 3, most)
					defer u.Stop(func() error { return nil })
					if most >= 0 {
						if _, err := u.Fill(); err != nil {
							t.Fatal(err)
						}
					}
					cursor := u.Cursor()
					defer cursor.Close()
					b, err := io.ReadAll(cursor)
					if err == nil {
						err = io.EOF
					}
					if got := string(b) + " " + err.Error(); got != c.want {
						t.Errorf("got %q, want %q", got, c.want)
					}
				})
			}
		}
	}
}
