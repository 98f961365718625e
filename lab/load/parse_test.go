package load

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func us(n float64) time.Duration { return time.Duration(n * float64(time.Microsecond)) }

// The files in testdata are what wrk 4.1.0 printed.
func TestParse(t *testing.T) {
	tests := []struct {
		file string
		why  string
		want Result
	}{
		{"clean", "with --latency", Result{Requests: 234549, PerSecond: 212820.65, Bytes: 36.01 * (1 << 20), Latency: Latency{us(174.95), us(142), us(157), us(273), us(330)}}},
		{"plain", "without", Result{Requests: 238566, PerSecond: 216631.03, Bytes: 36.63 * (1 << 20), Latency: Latency{Mean: us(163.12)}}},
		{"died", "the server was killed half-way", Result{Requests: 215662, PerSecond: 107675.09, Bytes: 33.11 * (1 << 20),
			Latency: Latency{us(285.67), us(137), us(150), us(262), us(709)}, Errors: Errors{Read: 128, Write: 145152}}},
		{"notfound", "every answer a 404", Result{Requests: 104275, PerSecond: 94832.87, Bytes: 17.5 * (1 << 20),
			Latency: Latency{us(246.83), us(61), us(89), us(497), us(3580)}, Errors: Errors{Status: 104275}}},
		{"closed", "no answer at all: 0 and -nan", Result{Errors: Errors{Read: 33619}}},
		{"timeout", "answers that came too late", Result{Requests: 16, PerSecond: 3.99, Bytes: 1.17 * (1 << 10), Errors: Errors{Timeout: 16}}},
	}
	for _, tt := range tests {
		text, err := os.ReadFile(filepath.Join("testdata", tt.file+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(string(text))
		if err != nil || got != tt.want {
			t.Errorf("%s (%s):\n got %+v, %v\nwant %+v", tt.file, tt.why, got, err, tt.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	text, err := os.ReadFile("testdata/died.txt")
	if err != nil {
		t.Fatal(err)
	}
	died := string(text)
	tests := []struct{ why, text string }{
		{"nothing", ""},
		{"cut off", died[:strings.Index(died, "Requests/sec")]},
		{"errors in an unknown form", strings.Replace(died, "write 145152", "write many", 1)},
		{"statuses in an unknown form", strings.Replace(died, "  Socket", "  Non-2xx or 3xx responses: some\n  Socket", 1)},
		{"bytes in an unknown unit", strings.Replace(died, "MB read", "XB read", 1)},
		{"a number too large", strings.Replace(died, "215662", "99999999999999999999", 1)},
	}
	for _, tt := range tests {
		if got, err := Parse(tt.text); err == nil {
			t.Errorf("%s: %+v, want an error", tt.why, got)
		}
	}
}

func TestErrorsSum(t *testing.T) {
	e := Errors{Connect: 1, Read: 2, Write: 4, Timeout: 8, Status: 16}
	if e.Sum() != 31 {
		t.Errorf("Sum() = %d, want 31", e.Sum())
	}
}

func TestByBytes(t *testing.T) {
	got := Result{Requests: 80, PerSecond: 40, Bytes: 1000}.ByBytes(10)
	if want := (Result{Requests: 100, PerSecond: 50, Bytes: 1000}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if none := (Result{}); none.ByBytes(10) != none {
		t.Errorf("of none: %+v", none.ByBytes(10))
	}
}
