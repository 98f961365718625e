package documents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// budget is how many words the pages for users may have together. A reader who wants to use
// chert should be able to read them in two hours.
const budget = 25_000

// The pages for users are short. A word has a letter or a digit; code counts too.
func TestWords(t *testing.T) {
	t.Parallel()
	total := 0
	for _, page := range pages(t) {
		if strings.HasPrefix(page, "examples/") {
			continue // a list of programs
		}
		text, err := os.ReadFile(filepath.Join(checkout, page))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for w := range strings.FieldsSeq(string(text)) {
			if strings.ContainsFunc(w, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
				n++
			}
		}
		t.Logf("%6d %s", n, page)
		total += n
	}
	if total > budget {
		t.Errorf("the pages for users have %d words, more than %d", total, budget)
	}
}
