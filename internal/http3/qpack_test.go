package http3

import (
	"strings"
	"testing"
)

func TestEncoderStream(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, in string
		want     error
	}{
		{"nothing", "", nil},
		{"a capacity of 0", "20", nil},
		{"twice", "2020", nil},
		{"RFC 9204 B.2, a capacity of 220", "3fbd01", errEncoderStream},
		{"RFC 9204 B.2, a name of the static table", "c00f7777772e6578616d706c652e636f6d", errEncoderStream},
		{"RFC 9204 B.3, a literal name", "4a637573746f6d2d6b65790c637573746f6d2d76616c7565", errEncoderStream},
		{"RFC 9204 B.4, a duplicate", "02", errEncoderStream},
		{"RFC 9204 B.5, a name of the dynamic table", "810d637573746f6d2d76616c756532", errEncoderStream},
		{"a capacity of 1", "21", errEncoderStream},
		{"a capacity of 31", "3f00", errEncoderStream},
		{"a capacity of 0, and one", "2021", errEncoderStream},
	} {
		for _, all := range [][][]byte{{unhex(test.in)}, single(unhex(test.in))} {
			var err error
			for _, p := range all {
				if err = CheckEncoderStream(p); err != nil {
					break
				}
			}
			if err != test.want {
				t.Errorf("%s: %v", test.name, err)
			}
		}
	}
}

func TestDecoderStream(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, in  string
		cancelled int
		want      error
	}{
		{"nothing", "", 0, nil},
		{"RFC 9204 B.2, an acknowledgment", "84", 0, errDecoderStream},
		{"RFC 9204 B.3, an increment", "01", 0, errDecoderStream},
		{"RFC 9204 B.4, a cancellation", "48", 1, nil},
		{"an increment of 0", "00", 0, errDecoderStream},
		{"cancellations", "40 7e 7f00 7fffff03 48", 5, nil},
		{"a cancellation that has not ended", "48 7fff", 1, nil},
		{"the last stream there can be", "7fc0ffffffffffffff3f 48", 2, nil},
		{"one beyond it", "7fc1ffffffffffffff3f", 0, errCancellation},
		{"an integer without end", "487f80808080808080808080", 1, errCancellation},
		{"an acknowledgment after a cancellation", "7f00 ff", 1, errDecoderStream},
	} {
		for _, all := range [][][]byte{{unhex(test.in)}, single(unhex(test.in))} {
			var d DecoderStream
			n, err := feed(&d, all)
			if n != test.cancelled || err != test.want {
				t.Errorf("%s in %d parts: %d, %v", test.name, len(all), n, err)
			}
		}
	}
	var d DecoderStream
	if n, err := feed(&d, single([]byte(strings.Repeat("\x7f\x80\x01", 1000)))); n != 1000 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func feed(d *DecoderStream, all [][]byte) (sum int, _ error) {
	for _, p := range all {
		n, err := d.Check(p)
		if sum += n; err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// FuzzDecoderStream: what a stream says does not depend on where its bytes are cut.
func FuzzDecoderStream(f *testing.F) {
	f.Add(unhex("407e7f007fffff0348"), []byte{3, 1})
	f.Add(unhex("7fc1ffffffffffffff3f"), []byte{5})
	f.Fuzz(func(t *testing.T, b, cuts []byte) {
		var one, two DecoderStream
		want, wantErr := one.Check(b)
		got, err := feed(&two, parts(b, cuts))
		if got != want || err != wantErr {
			t.Fatalf("%x: %d, %v, want %d, %v", b, got, err, want, wantErr)
		}
	})
}
