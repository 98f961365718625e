package router

// A Pattern is a pattern that was read from elsewhere, such as a file: a program can
// report mistakes in it before [Routes.Handle] would panic, which http.ServeMux does not
// permit. It is immutable.
type Pattern struct{ p *pattern }

// ParsePattern returns an error if [Routes.Handle] would reject the pattern by itself.
func ParsePattern(s string) (Pattern, error) {
	p, err := parse(s)
	return Pattern{p}, err
}

// Wildcards returns the names of p's wildcards in their order, and whether the last of
// them matches the rest of the path, as {name...} does.
func (p Pattern) Wildcards() (names []string, rest bool) {
	for _, s := range p.p.segments {
		if (s.kind == single || s.kind == multi) && s.text != "" {
			names = append(names, s.text)
			rest = s.kind == multi
		}
	}
	return names, rest
}

// Conflict returns why p and q cannot be registered together, in words, with p as the
// first: both match some request, and neither is more specific. It returns "" if they
// can be.
func (p Pattern) Conflict(q Pattern) string {
	if !conflict(p.p, q.p) {
		return ""
	}
	return explain(p.p, q.p)
}
