package http1

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"
)

func TestAppendStatusLine(t *testing.T) {
	for status := 0; status < 1000; status++ {
		text := http.StatusText(status)
		if text == "" {
			text = fmt.Sprintf("status code %d", status)
		}
		for minor := range uint8(3) {
			want := fmt.Sprintf("xHTTP/1.%d %03d %s\r\n", min(minor, 1), status, text)
			if got := string(AppendStatusLine([]byte("x"), minor, status)); got != want {
				t.Errorf("minor %d, status %d: got %q, want %q", minor, status, got, want)
			}
		}
	}
}

func TestAppendField(t *testing.T) {
	for _, c := range []struct{ value, why string }{
		{"", "empty"},
		{"b", "plain"},
		{" \t b c\t ", "space around"},
		{"\r\n b \r\n", "line ends around"},
		{"b\r\nEvil: yes", "line end within"},
		{"b\nc", "LF"},
		{"b\rc", "CR"},
		{"\r", "only CR"},
		{"a\x00b\x7f\x80", "other bytes stay"},
	} {
		var want bytes.Buffer
		http.Header{"Name": {c.value}}.Write(&want)
		if got := string(AppendField([]byte("x"), "Name", c.value)); got != "x"+want.String() {
			t.Errorf("%s: %q: got %q, want %q", c.why, c.value, got, want.String())
		}
	}
}

func TestAppendChunkSize(t *testing.T) {
	for _, n := range []int{0, 1, 9, 10, 15, 16, 255, 4096, 0xabcdef} {
		if got, want := string(AppendChunkSize([]byte("x"), n)), fmt.Sprintf("x%x\r\n", n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
