package adapt

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// headers writes the fields that add_header has: with always for all responses. Further ones of a name are added.
func (t *inServer) headers(l *level) {
	t.removed(l)
	var always, some []string
	var more [][]string
	const success = `status = ["2xx", "3xx"]`
	for _, name := range slices.Sorted(mapsKeys(l.fields)) {
		for i, value := range l.fields[name] {
			value, forAll := strings.CutPrefix(value, "always ")
			line := quote(name) + " = " + quote(value)
			switch add := "add = { " + line + " }"; {
			case i > 0 && forAll:
				more = append(more, []string{add})
			case i > 0:
				more = append(more, []string{success, add})
			case forAll:
				always = append(always, line)
			default:
				some = append(some, line)
			}
		}
	}
	if always != nil {
		l.key("headers", "{ "+strings.Join(always, ", ")+" }")
	}
	if some != nil {
		more = append([][]string{{success, "set = { " + strings.Join(some, ", ") + " }"}}, more...)
	}
	for _, lines := range more {
		l.table("["+l.name+".response_headers]", lines...)
	}
}

// removed writes the fields that proxy_hide_header removes from what comes from an upstream, before those that
// add_header has in their place.
func (t *inServer) removed(l *level) {
	for _, name := range unique(l.hidden) {
		values, strict := l.fields[name], l.strict
		if l.inherited && t.own != nil {
			values, strict = slices.Concat(t.own.fields[name], values), t.own.strict
		}
		switch remove := "remove = " + quote(name); {
		case name == "":
		case name == hsts && strict != "":
			l.table("["+l.name+".response_headers]", "set = { "+quote(name)+" = "+quote(strict)+" }")
		case values == nil:
			l.table("["+l.name+".response_headers]", remove)
		case !strings.HasPrefix(values[0], "always "): // the others are in place of the upstream's
			l.table("["+l.name+".response_headers]", `status = ["4xx", "5xx"]`, remove)
		}
	}
}

const hsts = "Strict-Transport-Security"

// rules writes those of files. Several of a name are one, with a list.
func (t *inServer) rules(d *directive, patterns []string, l *level) {
	if len(l.fields) == 0 {
		return
	}
	var lines []string
	for _, name := range slices.Sorted(mapsKeys(l.fields)) {
		if name == "Set-Cookie" && len(l.fields[name]) > 1 {
			t.note(d.line, "add_header %s is there twice, and can be once in rules", name)
		}
		lines = append(lines, quote(name)+" = "+quote(strings.Join(l.fields[name], ", ")))
	}
	l.table("["+l.name+".rules]", "match = "+list(patterns), "headers = { "+strings.Join(lines, ", ")+" }")
}

func mapsKeys(all map[string][]string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range all {
			if !yield(k) {
				return
			}
		}
	}
}

var maxAge = regexp.MustCompile(`^max-age=([0-9]+)(; *includeSubDomains)?(; *preload)?$`)

// field translates add_header.
func (t *inServer) field(d *directive, l *level) {
	name, value := http.CanonicalHeaderKey(d.arg(0)), d.arg(1)
	switch {
	case name == "Alt-Svc" && t.quic: // chert has its own
	case name == hsts && l.name == "site":
		m := maxAge.FindStringSubmatch(value)
		if m == nil {
			t.unknown(d)
			return
		}
		l.strict = value
		l.key("hsts", quote(m[1]+"s"))
		if m[2] != "" {
			l.key("hsts_subdomains", "true")
		}
	case name == "":
		t.unknown(d)
	case strings.Contains(value, "$"):
		t.note(d.line, "add_header %s is left out: values have no variables", name)
	case slices.Contains(d.words, "always"):
		l.field(name, "always "+value)
	default:
		l.field(name, value)
	}
}

func (l *level) field(name, value string) { l.fields[name] = append(l.fields[name], value) }

// expires is a Cache-Control of so many seconds.
func (t *inServer) expires(d *directive, l *level) {
	v := d.arg(0)
	units := map[byte]int{'s': 1, 'm': 60, 'h': 3600, 'd': 86400, 'w': 7 * 86400, 'M': 30 * 86400, 'y': 365 * 86400}
	control := ""
	switch {
	case v == "max":
		control = "max-age=315360000"
	case v == "off":
		return
	case v == "epoch" || v == "-1":
		control = "no-cache"
	case v != "":
		n, ok := number(v[:len(v)-1])
		if unit := units[v[len(v)-1]]; ok && unit > 0 && n < 1<<20 {
			control = "max-age=" + strconv.Itoa(n*unit)
		}
	}
	if control == "" {
		t.unknown(d)
		return
	}
	l.field("Cache-Control", control)
}

// types translates types, and default_type beside it, which is for all others then.
func (t *inServer) types(l *level) {
	other, listed, including := t.defaultType(l.types), false, false
	var rules [][]string
	for i := range l.types {
		d := &l.types[i]
		if d.name() == "default_type" {
			continue
		}
		listed = true
		for _, in := range d.block {
			if in.name() == "include" {
				including = true
				continue
			}
			var patterns []string
			for _, extension := range in.words[1:] {
				patterns = append(patterns, "*."+extension)
			}
			rules = append(rules, []string{"match = " + list(patterns), contentType(in.name())})
		}
	}
	if !listed {
		if other != "application/octet-stream" && !strings.HasPrefix(other, "text/plain") {
			t.note(l.types[len(l.types)-1].line, "default_type is left out: want types")
		}
		return
	}
	if !including {
		rules = append([][]string{{contentType(other)}}, rules...)
	}
	for _, lines := range rules {
		l.table("["+l.name+".rules]", lines...)
	}
}

// defaultType returns default_type of a level, or that of the server.
func (t *inServer) defaultType(own []directive) string {
	if t.own != nil {
		own = slices.Concat(t.own.types, own)
	}
	other := "text/plain"
	for i := range own {
		if own[i].name() == "default_type" {
			other = own[i].arg(0)
		}
	}
	return other
}

func contentType(value string) string { return `headers = { "Content-Type" = ` + quote(value) + " }" }

// fileTypes translates types, in a location for files with some extensions.
func (t *inServer) fileTypes(d *directive, location []directive, patterns []string) {
	if len(d.block) == 0 {
		for _, p := range patterns {
			t.site.key("types."+quote(p[1:]), quote(t.defaultType(location)))
		}
	}
	for _, in := range d.block {
		for _, extension := range in.words[1:] {
			if slices.Contains(patterns, "*."+extension) {
				t.site.key("types."+quote("."+extension), quote(in.name()))
			}
		}
	}
}

// basicAuth writes auth_basic and its file, each of which may be that of the server.
func (t *inServer) basicAuth(l *level) {
	if l.realm == "" && l.users == "" {
		return
	}
	if t.own != nil && l.realm == "" {
		l.realm = t.own.realm
	}
	if t.own != nil && l.users == "" {
		l.users = t.own.users
	}
	switch l.realm {
	case "":
	case "off":
		l.key("basic_auth", "false")
	default:
		l.key("basic_auth.realm", quote(l.realm))
		if l.users != "" {
			l.key("basic_auth.htpasswd", quote(l.users))
		}
	}
}
