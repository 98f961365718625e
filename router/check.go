package router

// This file is for programs that read patterns from elsewhere, such as a file, and
// report mistakes instead of panicking.

// Wildcards returns the names of a pattern's wildcards in their order, and whether the
// last of them matches the rest of the path, as {name...} does. It is an error if
// [Routes.Handle] would reject the pattern by itself.
func Wildcards(pattern string) (names []string, rest bool, err error) {
	p, err := parse(pattern)
	if err != nil {
		return nil, false, err
	}
	for _, s := range p.segments {
		if (s.kind == single || s.kind == multi) && s.text != "" {
			names = append(names, s.text)
			rest = s.kind == multi
		}
	}
	return names, rest, nil
}

// Conflict returns why two patterns cannot be registered together, in words: both match
// some request, and neither is more specific. It returns "" if they can be, and for
// patterns that [Wildcards] rejects.
func Conflict(first, second string) string {
	p, err := parse(first)
	if err != nil {
		return ""
	}
	q, err := parse(second)
	if err != nil || !conflict(p, q) {
		return ""
	}
	return explain(p, q)
}
