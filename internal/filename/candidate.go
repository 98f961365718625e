package filename

import (
	"fmt"
	"strconv"
	"strings"
)

// A Candidate is a path that may be sent for another one, as "{path}.html", or the status at
// the end of such a list, as "=404". Immutable.
type Candidate struct {
	Before, After string // the text around {path}
	Fixed         bool   // there is no {path}, and Before is all of it
	Status        int    // instead of a name; 0 for a name
}

const placeholder = "{path}"

// ParseCandidate returns an error if text is neither a path below the folder nor a status.
func ParseCandidate(text string) (c Candidate, err error) {
	if number, ok := strings.CutPrefix(text, "="); ok {
		c.Status, err = strconv.Atoi(number)
		if err != nil || c.Status < 400 || c.Status > 599 || len(number) != 3 {
			return c, fmt.Errorf(`%q is no status of an error, such as "=404"`, text)
		}
		return c, nil
	}
	before, after, found := strings.Cut(text, placeholder)
	c = Candidate{Before: before, After: after, Fixed: !found}
	switch {
	case strings.Contains(text, "$uri"):
		return c, fmt.Errorf("%q: the path of the request is {path} here", text)
	case strings.ContainsAny(before+after, "{}"):
		return c, fmt.Errorf("%q: only {path} can be filled in, once", text)
	}
	example := before
	if found {
		example = before + "/x" + after // {path} begins with a slash
	}
	for segment := range strings.SplitSeq(example, "/") {
		if text == "" || segment == "." || segment == ".." || strings.IndexByte(segment, 0) >= 0 {
			return c, fmt.Errorf("%q is not a path within the folder", text)
		}
	}
	return c, nil
}

// AppendName appends the path that c is for a request of path, which is clean.
func (c *Candidate) AppendName(b []byte, path string) []byte {
	b = append(b, c.Before...)
	if !c.Fixed {
		b = append(b, path...)
		b = append(b, c.After...)
	}
	return b
}

// Own reports whether c is the path of the request itself, as a file or as a folder.
func (c *Candidate) Own() bool {
	return !c.Fixed && (c.Before == "" || c.Before == "/") && (c.After == "" || c.After == "/")
}
