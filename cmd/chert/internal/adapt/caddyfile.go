package adapt

import (
	"slices"
	"strconv"
	"strings"
)

// maxImported bounds what imports of snippets may become, which can import one another: in bytes, of which a directive
// counts as some.
const (
	maxImported    = 1 << 20
	directiveBytes = 64
)

// unbraced gives the only site of a file its braces, which may be left out: its addresses are a line, and all that
// follows is its block.
func unbraced(all []directive) []directive {
	for i := range all {
		d := &all[i]
		if d.name() == "" || d.name() == "import" || strings.HasPrefix(strings.TrimPrefix(d.name(), "&"), "(") {
			continue
		}
		if d.block == nil {
			d.block = slices.Clone(all[i+1:])
			return all[:i+1]
		}
		break
	}
	return all
}

// snippets puts what snippets of the file are where they are imported. Imports of files stay.
type snippets struct {
	blocks map[string][]directive
	left   int // of maxImported
}

func withSnippets(all []directive) []directive {
	s := &snippets{blocks: make(map[string][]directive), left: maxImported}
	for i := range all {
		if name, ok := strings.CutPrefix(all[i].name(), "("); ok && strings.HasSuffix(name, ")") {
			s.blocks[name[:len(name)-1]] = all[i].block
		}
	}
	return s.imported(all, nil, nil, 0)
}

// imported returns directives with what they import. args and given are the arguments and the block of the import that
// they are from.
func (s *snippets) imported(all []directive, args []string, given []directive, depth int) (out []directive) {
	for i := range all {
		if part, ok := partOf(given, &all[i]); ok && s.left >= 0 {
			out = append(out, s.imported(part, nil, nil, maxDepth)...) // it has what it imports
			continue
		}
		d := s.filled(all[i], args)
		block, known := s.blocks[d.arg(0)]
		imports := d.name() == "import" && len(d.words) > 1
		if s.left -= directiveBytes; s.left < 0 || !imports || !known || depth == maxDepth {
			d.lost = imports
			if d.block != nil {
				d.block = append([]directive{}, s.imported(d.block, args, given, depth)...)
			}
			out = append(out, d)
			continue
		}
		out = append(out, s.imported(block, d.words[2:], s.imported(d.block, args, given, depth), depth+1)...)
	}
	return out
}

// partOf returns what {block} and {blocks.NAME} of a snippet stand for, of the block of the import.
func partOf(given []directive, d *directive) (part []directive, ok bool) {
	if len(given) == 0 || len(d.words) != 1 {
		return nil, false
	}
	if d.name() == "{block}" {
		return given, true
	}
	name, ok := strings.CutPrefix(strings.TrimSuffix(d.name(), "}"), "{blocks.")
	for i := range given {
		if ok && given[i].name() == name {
			part = append(part, given[i].block...)
		}
	}
	return part, ok
}

// filled returns a directive with arguments of import in its words.
func (s *snippets) filled(d directive, args []string) directive {
	if len(args) == 0 {
		return d
	}
	d.words = slices.Clone(d.words)
	for i, arg := range args {
		for _, name := range []string{"{args[" + strconv.Itoa(i) + "]}", "{args." + strconv.Itoa(i) + "}"} {
			for j, w := range d.words {
				if n := strings.Count(w, name) * len(arg); n > 0 && n <= s.left {
					s.left -= n
					d.words[j] = strings.ReplaceAll(w, name, arg)
				}
			}
		}
	}
	return d
}
