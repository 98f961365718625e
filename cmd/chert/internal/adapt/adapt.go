package adapt

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chert-http/chert/cmd/chert/internal/config"
)

// MaxSize is the longest file that is read, in bytes.
const MaxSize = 1 << 20

// A Note says what was not translated.
type Note struct {
	File string // that is included, "" for the configuration itself
	Line int
	Text string
}

// Error implements error: why a text is no configuration.
func (n Note) Error() string { return fmt.Sprintf("line %d: %s", n.Line, n.Text) }

// Nginx translates a configuration of nginx. It is an error if the text is none, a Note if a line shows that.
// Of what it includes it has notes.
func Nginx(text string) (toml string, notes []Note, err error) { return NginxFiles(text, nil) }

// NginxFiles is Nginx with the files that the text includes; nil is for none.
func NginxFiles(text string, source Source) (toml string, notes []Note, err error) {
	if len(text) > MaxSize {
		return "", nil, fmt.Errorf("it is longer than 1 MiB")
	}
	s := &scanner{text: text, line: 1}
	all, err := s.parse(0)
	if err != nil {
		return "", nil, err
	}
	o := &output{lines: strings.Count(text, "\n") + 1}
	if source != nil {
		n := &includes{output: o, source: source, left: maxIncluded, guards: has(all, "server")}
		if all, err = n.replaced(all); err != nil {
			return "", nil, err
		}
	}
	n := &nginx{output: o, zones: make(map[string]string)}
	n.top(all)
	return o.String(), o.sorted(), nil
}

// Caddy translates a Caddyfile. Its errors are as Nginx's.
func Caddy(text string) (toml string, notes []Note, err error) {
	if len(text) > MaxSize {
		return "", nil, fmt.Errorf("it is longer than 1 MiB")
	}
	s := &scanner{text: text, line: 1, lines: true}
	all, err := s.parse(0)
	if err != nil {
		return "", nil, err
	}
	o := &output{}
	c := &caddy{output: o}
	c.top(withSnippets(unbraced(withVariables(all))))
	return o.String(), o.sorted(), nil
}

// output is what has been translated.
type output struct {
	listen   []string
	redirect string // http_redirect
	proxies  []string
	head     []string // further lines before the first table
	sites    []*site
	notes    []Note

	upstreams []*upstream

	origins []origin // of what is included
	lines   int      // of all files
}

func (o *output) note(line int, format string, args ...any) {
	o.notes = append(o.notes, Note{Line: line, Text: unmarked(fmt.Sprintf(format, args...))})
}

// unknown notes a directive that is left out, with what chert has instead.
func (o *output) unknown(d *directive) {
	if d.lost && d.name() == "include" { // which has a note with the reason
		return
	}
	text, key := d.name()+" is left out", strings.ToLower(strings.ReplaceAll(d.name(), "-", "_"))
	if d.name() == "include" {
		text = "include " + d.arg(0) + " is left out"
	} else if hint, ok := config.Instead[key]; ok && hint.Key != "" {
		text += ": " + hint.Key
	}
	o.note(d.line, "%s", text)
}

func (o *output) sorted() []Note {
	slices.SortStableFunc(o.notes, func(a, b Note) int { return a.Line - b.Line })
	notes := slices.Compact(o.notes)
	for i := range notes {
		notes[i] = o.place(notes[i])
	}
	return notes
}

// String is the whole file.
func (o *output) String() string {
	var b strings.Builder
	if len(o.listen) > 0 {
		fmt.Fprintf(&b, "listen = %s\n", list(o.listen))
	}
	if o.redirect != "" {
		fmt.Fprintf(&b, "http_redirect = %s\n", quote(o.redirect))
	}
	if len(o.proxies) > 0 {
		fmt.Fprintf(&b, "trusted_proxies = %s\n", list(o.proxies))
	}
	for _, line := range o.head {
		b.WriteString(line + "\n")
	}
	for _, u := range o.upstreams {
		if u.used && len(u.servers) > 0 {
			u.write(&b)
		}
	}
	for _, s := range o.sites {
		s.write(&b)
	}
	return b.String()
}

// A site is a [[site]] or a [[redirect]].
type site struct {
	line   int
	name   string // "site" or "redirect"
	hosts  []string
	keys   []string // lines
	tables []string // each with its lines
	routes []*route
	// hidden are patterns of names, which routes with root have too, paths those below the site's own root.
	hidden, paths []string

	// Of Caddy's: where it is without TLS, and with it.
	plain, secure []string
}

// A route is a [[site.route]].
type route struct {
	keys   []string
	tables []string
	sole   bool     // nothing else that matches counts before it, a regular expression of nginx or abort of Caddy
	hidden []string // if it forwards, patterns
	strict []string // patterns of what has the rules of the server, not its own
	itself string   // a path without a slash at its end, which another route is to be for

	relaxes bool // it may admit clients that the server does not
}

func (s *site) key(key, value string)  { s.keys = withKey(s.keys, key, value) }
func (r *route) key(key, value string) { r.keys = withKey(r.keys, key, value) }

// withKey adds a key, or replaces it, and a table of which it is a part, or that it is. What
// denies all stays.
func withKey(all []string, key, value string) []string {
	table, _, _ := strings.Cut(key, ".")
	all = slices.DeleteFunc(all, func(line string) bool {
		return strings.HasPrefix(line, key+".") || table != key && strings.HasPrefix(line, table+" = ")
	})
	for i, line := range all {
		if rest, ok := strings.CutPrefix(line, key+" = "); ok {
			if key != "deny" || rest != `["all"]` {
				all[i] = key + " = " + value
			}
			return all
		}
	}
	return append(all, key+" = "+value)
}

// hasKey reports whether lines have a key.
func hasKey(lines []string, key string) bool {
	return slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, key+" = ") })
}

// add adds a route. One of the same path stays, but refuses if r does.
func (s *site) add(r *route) {
	for _, o := range s.routes {
		if len(o.keys) == 0 || o.keys[0] != r.keys[0] {
			continue
		}
		if hasKey(r.keys, "deny") || hasKey(r.keys, "respond") && !hasKey(o.keys, "respond") {
			o.key("deny", nobody)
		}
		return
	}
	s.routes = append(s.routes, r)
}

// exact adds the routes for the paths themselves of those for what is below them, which would be redirected otherwise.
func (s *site) exact() {
	for i := len(s.routes) - 1; i >= 0; i-- {
		r := s.routes[i]
		path := "path = " + quote(r.itself)
		if r.itself == "" || slices.ContainsFunc(s.routes, func(o *route) bool { return o.keys[0] == path }) {
			continue
		}
		one := &route{keys: slices.Clone(r.keys), tables: slices.Clone(r.tables), sole: r.sole,
			hidden: slices.Clone(r.hidden), relaxes: r.relaxes}
		one.keys[0] = path
		s.routes = slices.Insert(s.routes, i+1, one)
	}
}

// nobody is the value of deny that refuses all clients.
const nobody = `["all"]`

// refuse answers a path with a status, that of a refusal: what a directive that is left out would have answered,
// or kept from some, is not to be open.
func (s *site) refuse(path, status string) {
	r := new(route)
	r.key("path", quote(path))
	r.key("respond", status)
	if status == forbidden {
		r.key("deny", nobody)
	}
	s.add(r)
}

// keep hides a path, or what it and one of the ends are a pattern for, unless it is the front page.
func (s *site) keep(path string, ends ...string) {
	if strings.Trim(path, "/") == "" {
		return
	}
	for _, end := range ends {
		s.paths = append(s.paths, literal.Replace(path)+end)
	}
}

// literal makes a text a pattern for itself.
var literal = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`, `\`, `\\`)

// Statuses of refusals.
const (
	forbidden = "403" // to all, of what some may have
	internal  = "404"
	unpassed  = "502" // to what chert does not forward to
)

func (s *site) table(name string, lines ...string)  { s.tables = withTable(s.tables, name, lines) }
func (r *route) table(name string, lines ...string) { r.tables = withTable(r.tables, name, lines) }

// withTable adds a table. One that is there gets the lines, unless there can be several.
func withTable(all []string, name string, lines []string) []string {
	head := "[" + name + "]"
	at := slices.IndexFunc(all, func(t string) bool { return strings.HasPrefix(t, head+"\n") })
	if name[0] == '[' || at < 0 {
		at = len(all)
		all = append(all, head)
	}
	for _, line := range lines {
		if key, _, _ := strings.Cut(line, " = "); !strings.Contains(all[at], "\n"+key+" = ") {
			all[at] += "\n" + line
		}
	}
	return all
}

func (s *site) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n[[%s]]\nhosts = %s\n", s.name, list(s.hosts))
	hide(s.key, slices.Concat(s.hidden, s.paths))
	for _, line := range s.keys {
		b.WriteString(line + "\n")
	}
	for _, table := range s.tables {
		b.WriteString(table + "\n")
	}
	for _, r := range s.routes {
		switch {
		case hasKey(r.keys, "proxy"):
			hide(r.key, slices.Concat(r.hidden, r.strict, r.below(s.paths)))
		case hasKey(r.keys, "root") && (len(r.strict) > 0 || len(s.paths) > 0 && !r.everything()):
			all := unique(slices.Concat(s.hidden, r.strict, r.below(s.paths)))
			r.key("hidden", list(slices.DeleteFunc(all, func(p string) bool { return p == dotfiles })))
		}
		b.WriteString("[[site.route]]\n")
		for _, line := range r.keys {
			b.WriteString(line + "\n")
		}
		for _, table := range r.tables {
			b.WriteString(table + "\n")
		}
	}
}

// hide adds the keys that hide what patterns are for.
func hide(key func(key, value string), patterns []string) {
	if slices.Contains(patterns, dotfiles) {
		key("dotfiles", "false")
	}
	if all := slices.DeleteFunc(unique(patterns), func(p string) bool { return p == dotfiles }); len(all) > 0 {
		key("hidden", list(all))
	}
}

// below returns those of some patterns of paths that are for what the route has, as it forwards or looks for them.
func (r *route) below(paths []string) (all []string) {
	path, below := r.path()
	to := path
	for _, table := range r.tables {
		if own, ok := strings.CutPrefix(table, r.moving()); ok {
			to = strings.TrimSuffix(own, `{1}"`)
		}
	}
	if hasKey(r.keys, "strip") || hasKey(r.keys, "root") {
		to = "/"
	}
	for _, p := range paths {
		if rest, ok := strings.CutPrefix(p, literal.Replace(path)); ok && below {
			all = append(all, literal.Replace(to)+rest)
		}
	}
	return all
}

// bound makes plain and secure the addresses of listen, the first without TLS if there are both.
func (o *output) bound(plain, secure []string) {
	switch {
	case len(secure) == 0:
		o.listen = plain
		return
	case len(plain) == 0:
		o.listen = secure
		return
	}
	for _, addr := range secure { // tables, after all other keys
		o.head = append(o.head, "[[listen]]", "address = "+quote(addr))
	}
	for _, addr := range plain {
		o.head = append(o.head, "[[listen]]", "address = "+quote(addr), "tls = false")
	}
}

// quote makes a basic string of TOML. "${" would be a variable, as what is marked becomes.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "${", "$${") {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return marked.ReplaceAllStringFunc(b.String(), func(text string) string {
		return strings.NewReplacer("\ue000", "${", "\ue001", ":-", "\ue002", "}").Replace(text)
	})
}

func list(all []string) string {
	quoted := make([]string, len(all))
	for i, s := range all {
		quoted[i] = quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func number(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0
}
