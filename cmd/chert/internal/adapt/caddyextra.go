package adapt

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// header translates header of all responses of a site or a route, of one field or several.
func (c *caddy) header(d *directive, args []string, add func(name string, lines ...string), prefix string) {
	lines := d.block
	if len(args) > 0 {
		lines = []directive{{words: args, line: d.line}}
	}
	table := "[" + prefix + ".response_headers]"
	for i := range lines {
		in := &lines[i]
		name, value := in.name(), in.arg(0)
		plain := strings.TrimLeft(name, "+->")
		line := "{ " + quote(plain) + " = " + quote(value) + " }"
		switch {
		case name == "defer":
		case in.lost:
			c.unknown(in)
		case strings.Contains(value, "{"):
			c.note(in.line, "header %s is left out: the value has a placeholder, which chert would send as it is", name)
		case !fieldName(plain) || len(name) > len(plain)+1:
			c.note(in.line, "header %s is left out: want the name of a field after -, + or >, or nothing", name)
		case name[0] == '-' && len(in.words) == 1:
			add(table, "remove = "+quote(plain))
		case name[0] == '-' || len(in.words) != 2:
			c.note(in.line, "header %s is left out: fields are set, added or removed", name)
		case name[0] == '+':
			add(table, "add = "+line)
		default:
			c.set = append(c.set, http.CanonicalHeaderKey(plain))
			add(table, "set = "+line)
		}
	}
}

// unremoved leaves out what header_down removes of fields that header sets, which is in their place: the removal comes
// last in chert, and first in Caddy.
func (c *caddy) unremoved(s *site) {
	removes := func(table string) bool {
		return slices.ContainsFunc(c.set, func(name string) bool {
			return strings.HasSuffix(table, ".response_headers]]\nremove = "+quote(name))
		})
	}
	s.tables = slices.DeleteFunc(s.tables, removes)
	for _, r := range s.routes {
		r.tables = slices.DeleteFunc(r.tables, removes)
	}
}

// caddySize is a size, of which "10M" is ten million bytes, and 10 MiB in chert.
var caddySize = regexp.MustCompile(`(?i)^([0-9]+(?:[kmg]i?)?)b?$`)

// requestBody translates request_body of all requests of a site or a route.
func (c *caddy) requestBody(d *directive, key func(key, value string)) {
	for i := range d.block {
		in := &d.block[i]
		m := caddySize.FindStringSubmatch(in.arg(0))
		if in.name() != "max_size" || m == nil {
			c.unknown(in)
			continue
		}
		key("limits.body", quote(m[1]+"B"))
	}
}

// log translates log, on stderr or in a file.
func (c *caddy) log(s *site, d *directive) {
	file, format := "", "json"
	for i := range d.block {
		in := &d.block[i]
		switch v := in.arg(0); {
		case in.name() == "output" && (v == "stderr" || v == "stdout"):
		case in.name() == "output" && v == "file" && len(in.words) == 3 && !strings.Contains(in.arg(1), "{"):
			file = in.arg(1)
			for j := range in.block {
				c.note(in.block[j].line, "%s of log is left out: want logrotate", in.block[j].name())
			}
		case in.name() == "output" && v == "discard":
			format = "off"
		case in.name() == "format" && v == "json" && len(in.block) == 0:
		case in.name() == "format" && v == "console" && len(in.block) == 0:
			format = "text"
		default:
			c.note(in.line, "%s of log is left out: want [site.log]", in.name())
		}
	}
	if file == "" {
		s.key("log", quote(format))
		return
	}
	s.key("log", "{ file = "+quote(file)+", format = "+quote(format)+" }")
}

// email translates the global option, which is for certificates of an authority.
func (c *caddy) email(d *directive) {
	if v := d.arg(0); len(d.words) == 2 && !strings.Contains(v, "{") && (strings.Contains(v, "@") || isVariable(v)) &&
		slices.ContainsFunc(c.sites, func(s *site) bool { return hasKey(s.keys, "tls_auto") }) {
		c.head = append(c.head, "tls_email = "+quote(v))
		return
	}
	c.unknown(d)
}
