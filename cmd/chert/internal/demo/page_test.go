package demo

import (
	"strings"
	"testing"
)

// What a client has sent in Host is in the lines as text.
func TestPageEscapes(t *testing.T) {
	t.Parallel()
	const evil = `"><script>&`
	var b strings.Builder
	c := Command{Status: 404, Shows: evil, Curl: evil, Try: &Try{evil, evil, evil, evil}}
	c.appendTo(&b)
	got := b.String()
	if strings.Contains(got, "<script>") || strings.Count(got, "&#34;&gt;&lt;script&gt;&amp;") != 8 || !strings.Contains(got, `class="status s4">404<`) {
		t.Error(got)
	}
}
