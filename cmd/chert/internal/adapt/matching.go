package adapt

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
)

var (
	// extensions is a regular expression for the ends of names.
	extensions = regexp.MustCompile(`^\\\.\(?(?:\?:)?([a-zA-Z0-9|?]+)\)?\$$`)
	// rest is one for a prefix and what follows it.
	rest = regexp.MustCompile(`^\^(/[a-zA-Z0-9_/-]*)\(\.\*\)\$?$`)
	// names is one for files in a folder.
	names = regexp.MustCompile(`^\^/([a-zA-Z0-9_/-]+/)\[\^/\]\*\\\.([a-zA-Z0-9]+)\$$`)
	// beginnings is one for all that begins with a path, or with one of several.
	beginnings = regexp.MustCompile(`^\^(/[a-zA-Z0-9_/-]*)(?:\((?:\?:)?([a-zA-Z0-9_/|-]+)\))?` +
		`(|\$|/|/\.\*\$?|/\(\.\*\)\$?|\.\*\$?|\((?:\?:)?/\|\$\)|\((?:\?:)?\$\|/\))$`)
	// group is a part in parentheses, single a regular expression that has | in those alone.
	group  = `\((?:[^()]|\([^()]*\))*\)`
	single = `(?:[^|()\[\]\\]|\\.|\[\^?\]?[^\]]*\]|` + group + `)*`
	// folders is one for all in folders of some names, wherever they are.
	folders = regexp.MustCompile(`^/(?:([a-zA-Z0-9_-]+)|\((?:\?:)?([a-zA-Z0-9_|-]+)\))/$`)
	// ends is one for names with some ends, of files or of folders.
	ends = regexp.MustCompile(`^(?:` + single + `|\^?\((?:\?:)?\.[*+])` +
		`\\\.(?:([a-zA-Z0-9?]+)|\((?:\?:)?([a-zA-Z0-9|?]+)\))\)?` +
		`(|\$|/|\((?:\?:)?/\|\$\)|\((?:\?:)?\$\|/\)|\(/\.[*+]\)\??\$)$`)
	// dots is one for names that begin with a dot, known for all of them but .well-known.
	dots  = regexp.MustCompile(`^\^?/\\\.(?:(?:[^*+?{|()\[\]\\]|\\.|\[[^\]]*\]|` + group + `)` + single + `)?$`)
	known = regexp.MustCompile(`^\^?/\\\.\(\?!\(?well-known\)?(?:\\?/)?\)`)
	// others is one for some that do not begin with ".w".
	other  = `[a-vx-zA-VX-Z0-9_]`
	others = regexp.MustCompile(`^\^?/\\\.(?:` + other + `(?:[^?*{]|$)|\((?:\?:)?` + other + `(?:[^|()?*{][^|()]*)?` +
		`(?:\|` + other + `(?:[^|()?*{][^|()]*)?)*\)(?:[^?*{]|$))`)
)

// A beginning is what a location with a regular expression is, if it is for no more than a path's beginning.
type beginning struct{ how, path string }

// prefixes returns the paths that a regular expression is for all below of, nil if it is for others, or the block needs
// what it has captured.
func prefixes(how, expression string, block []directive) (all []beginning) {
	m := beginnings.FindStringSubmatch(expression)
	if how != "~" || m == nil || capturing(block) {
		return nil
	}
	for one := range strings.SplitSeq(m[2], "|") {
		b := beginning{"^~", m[1] + one}
		switch tail := m[3]; {
		case tail == "$":
			b.how = "="
		case strings.HasPrefix(tail, "/") || strings.HasPrefix(tail, "("): // without the slash it is redirected there
			b.path += "/"
		}
		if strings.Contains(b.path, "//") {
			return nil
		}
		all = append(all, b)
	}
	return all
}

func capturing(block []directive) bool {
	return slices.ContainsFunc(block, func(d directive) bool {
		return d.name() == "alias" || capturing(d.block) || slices.ContainsFunc(d.words, captures.MatchString)
	})
}

// within reports whether another location is in those of d, for which nginx prefers d, and chert the other.
func (t *inServer) within(d *directive, all []beginning) bool {
	return slices.ContainsFunc(t.around, func(o directive) bool {
		if o.name() != "location" || &o.words[0] == &d.words[0] {
			return false
		}
		others := prefixes(o.arg(0), o.arg(1), o.block)
		if len(o.words) == 2 {
			others = []beginning{{"", o.arg(0)}}
		}
		return slices.ContainsFunc(others, func(b beginning) bool {
			return slices.ContainsFunc(all, func(a beginning) bool {
				return a.how != "=" && strings.HasPrefix(b.path, a.path)
			})
		})
	})
}

// dotfiles stands for names that begin with a dot, but for /.well-known/, among patterns.
const dotfiles = "."

// endings returns patterns for all the names that a regular expression is for, or for more; nil if there are none.
func endings(expression string) (patterns []string) {
	begin := "*."
	if dots.MatchString(expression) {
		if begin = "."; known.MatchString(expression) {
			return []string{dotfiles}
		}
		if !ends.MatchString(expression) || strings.Count(expression, `\.`) > 1 {
			return []string{".*"}
		}
	}
	if m := folders.FindStringSubmatch(expression); m != nil {
		patterns = strings.Split(m[1]+m[2], "|")
		if slices.Contains(patterns, "") {
			return nil
		}
		return patterns
	}
	m := ends.FindStringSubmatch(expression)
	if m == nil {
		return nil
	}
	for one := range strings.SplitSeq(m[1]+m[2], "|") {
		all := optional(one)
		if all == nil {
			return nil
		}
		for _, one := range all {
			if one = begin + one; m[3] == "" {
				one += "*"
			}
			patterns = append(patterns, one)
		}
	}
	return patterns
}

// optional returns the names that an end is for, in which a question mark makes the letter before it optional, as in
// jpe?g; nil if it is for others, or many.
func optional(end string) (all []string) {
	before, after, found := strings.Cut(end, "?")
	switch {
	case !found && end != "":
		return []string{end}
	case before == "" || len(before) == 1 && after == "", strings.Count(end, "?") > 3, strings.HasPrefix(after, "?"):
		return nil
	}
	for _, one := range []string{before, before[:len(before)-1]} {
		ends := optional(one + after)
		if ends == nil {
			return nil
		}
		all = append(all, ends...)
	}
	return all
}

// hides reports whether a location is for names of files, of which no route comes.
func (t *inServer) hides(d *directive) bool {
	return strings.HasPrefix(d.arg(0), "~") && prefixes(d.arg(0), d.arg(1), d.block) == nil
}

// matching is a location with a regular expression, of those that rules and routes can express.
func (t *inServer) matching(d *directive, how, expression string) {
	status := refusal(d.block)
	if m := extensions.FindStringSubmatch(expression); m != nil {
		if patterns := endings(expression); patterns != nil {
			t.files(d, patterns, t.site.level())
			return
		}
	}
	if m := names.FindStringSubmatch(expression); m != nil && status == "" {
		t.files(d, []string{m[1] + "*." + m[2]}, t.site.level())
		return
	}
	if status != "" && dots.MatchString(expression) {
		if !forNobody(d.block) {
			t.note(d.line, "location %s is left out: such names are hidden, and 404", expression)
		}
		patterns := endings(expression)
		switch {
		case others.MatchString(expression):
			t.matched = append(t.matched, patterns...)
		case strings.Contains(expression, "(?!well-known") && patterns[0] != dotfiles:
			if t.matched = append(t.matched, patterns...); !hasKey(t.site.keys, "proxy") {
				t.note(d.line, "location %s has some of /.well-known/, of which all files are served here", expression)
			}
		default:
			t.hide(patterns, true)
		}
		return
	}
	if m := rest.FindStringSubmatch(expression); m != nil && len(d.block) == 1 && d.block[0].name() == "return" {
		in := d.block[0]
		in.words = slices.Clone(in.words)
		for i := range in.words {
			in.words[i] = strings.ReplaceAll(in.words[i], "$1", "{rest}")
		}
		if status, to, ok := t.returned(&in); ok && strings.HasSuffix(m[1], "/") {
			r := new(route)
			r.key("path", quote(m[1]+"{rest...}"))
			r.key("redirect", quote(to))
			r.key("status", status)
			t.site.add(r)
			return
		}
	}
	if status == "" {
		t.note(d.line, "location ~ %s is left out: routes have patterns of paths, and rules those of files", expression)
		return
	}
	t.leave(d, how, expression, t.site.level())
}

// forNobody reports whether a block refuses all clients, and does nothing else.
func forNobody(block []directive) bool {
	return !slices.ContainsFunc(block, func(d directive) bool {
		refuses := d.name() == "deny" && d.arg(0) == "all" || d.name() == "return" && withholds(&d)
		return !refuses && d.name() != "access_log" && !slices.Contains(unneeded, d.name())
	})
}

// files is a location for the names of files.
func (t *inServer) files(d *directive, patterns []string, of *level) {
	l := &level{name: of.name, table: of.table, fields: make(map[string][]string)}
	switch {
	case refusal(d.block) != "":
		t.hide(patterns, true)
	case t.falls && strings.HasPrefix(d.arg(0), "~"):
		t.note(d.line, "location %s: what is missing is answered as try_files of others says, where nginx has 404",
			d.arg(1))
	}
	for i := range d.block {
		in := &d.block[i]
		switch {
		case in.name() == "add_header" && !strings.Contains(in.arg(1), "$") && in.arg(0) != "":
			l.field(http.CanonicalHeaderKey(in.arg(0)), in.arg(1))
		case in.name() == "expires":
			t.expires(in, l)
		case in.name() == "return" && in.arg(0) == "404":
		case withholds(in):
			t.note(in.line, "%s of files is left out: they are hidden, and 404", in.name())
		case in.name() == "types" && in.block != nil && strings.HasPrefix(patterns[0], "*."):
			t.fileTypes(in, d.block, patterns)
		case in.name() == "default_type" && strings.HasPrefix(patterns[0], "*."):
			for _, p := range patterns {
				t.site.key("types."+quote(p[1:]), quote(in.arg(0)))
			}
		case in.name() == "access_log" && in.arg(0) == "off":
			t.note(in.line, `access_log off of files is left out: want log = { skip = %s }`, list(patterns))
		case slices.Contains(unneeded, in.name()):
		default:
			t.unknown(in)
		}
	}
	t.rules(d, patterns, l)
}
