package adapt

import (
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/chert-http/chert/internal/filename"
)

// guards are directives about who may have something. Without them it would be open to all.
var guards = strings.Fields(`auth_delay satisfy secure_link secure_link_md5 valid_referers js_access limit_except
	ssl_crl ssl_ocsp`)

// isGuard reports whether d is one of those, or of a module for access, or includes a file that was not read.
func isGuard(d *directive) bool {
	name, v := d.name(), d.arg(0)
	switch {
	case name == "include":
		return d.lost && !slices.Contains(harmless, path.Base(v))
	case v == "off" || name == "satisfy" && v == "all":
		return false
	case strings.HasPrefix(name, "auth_basic"), strings.HasPrefix(name, "auth_http"):
		return false
	}
	return slices.Contains(guards, name) || strings.HasPrefix(name, "auth_") || strings.HasPrefix(name, "access_by_")
}

// refusal returns the status to refuse requests with that a block is for, if the block is left out; "" if it refuses no
// client itself.
func refusal(block []directive) (status string) {
	for i := range block {
		switch d := &block[i]; {
		case d.name() == "internal":
			return internal
		case withholds(d):
			status = forbidden
		case status == "" && strings.HasSuffix(d.name(), "_pass"):
			status = unpassed
		}
	}
	return status
}

// withholds reports whether d keeps something from some clients.
func withholds(d *directive) bool {
	switch d.name() {
	case "deny":
		return true
	case "auth_basic":
		return d.arg(0) != "off"
	case "return":
		return len(d.arg(0)) == 3 && d.arg(0)[0] == '4'
	case "if", "location":
		return refusal(d.block) != ""
	}
	return isGuard(d)
}

// deniesNote is the end of a note of what denies all.
const deniesNote = `, so nobody may: deny is "all"`

// denied is for a directive that is left out and says who may have what l is.
func (t *inServer) denied(d *directive, l *level) {
	t.note(d.line, "%s %s who may have it%s", d.name(), d.says(), deniesNote)
	l.key("deny", nobody)
	t.guarded = t.guarded || l.name == "site"
}

// says is what the note of a guard has.
func (d *directive) says() string {
	if d.lost {
		return "may say"
	}
	return "says"
}

// condition translates an if that refuses clients without a certificate, or all hosts but one.
func (t *inServer) condition(d *directive, l *level) {
	if len(d.words) == 4 && d.arg(1) == "!=" && len(d.block) == 1 && d.block[0].name() == "return" && withholds(d) {
		switch v := strings.TrimSuffix(d.arg(2), ")"); {
		case d.arg(0) == "($ssl_client_verify" && v == "SUCCESS" && hasKey(t.site.keys, "client_certificate"):
			l.key("client_certificate", quote("required"))
			return
		case d.arg(0) == "($host" && l.name == "site" && slices.Contains(t.site.hosts, v):
			t.site.hosts = []string{v}
			return
		}
	}
	t.unknown(d)
	if withholds(d) {
		t.denied(d, l)
	}
}

// clients translates what a server says of the certificates of clients.
func (t *inServer) clients(all []directive, l *level) {
	var verify *directive
	ca := make(map[string]string)
	for i := range all {
		switch d := &all[i]; d.name() {
		case "ssl_client_certificate", "ssl_trusted_certificate":
			ca[d.name()] = d.arg(0)
		case "ssl_verify_client":
			verify = d
		}
	}
	if verify == nil || verify.arg(0) == "off" {
		return
	}
	file := ca["ssl_client_certificate"]
	if file == "" {
		file = ca["ssl_trusted_certificate"]
	}
	switch v := verify.arg(0); {
	case v == "optional_no_ca":
		t.unknown(verify)
	case file == "" && v != "optional":
		t.unknown(verify)
		t.denied(verify, l)
	case file == "":
	default:
		if l.key("client_ca", quote(file)); v == "optional" {
			l.key("client_certificate", quote(v))
		}
	}
}

// forwardedBy returns the addresses of set_real_ip_from whose X-Forwarded-For counts, and otherwise the field that
// does.
func forwardedBy(all []directive) (proxies []string, field string) {
	field = "X-Real-IP"
	for i := range all {
		if all[i].name() == "real_ip_header" {
			field = all[i].arg(0)
		}
	}
	if !strings.EqualFold(field, "X-Forwarded-For") {
		return nil, field
	}
	for i := range all {
		if all[i].name() == "set_real_ip_from" {
			proxies = unique(append(proxies, strings.TrimSuffix(all[i].arg(0), ":")))
		}
	}
	return proxies, ""
}

// trust adds the proxies of a server to those of all, if the addresses come in X-Forwarded-For: proxies that set
// another field may pass on what clients write there.
func (n *nginx) trust(s *server) {
	all := inherit(n.outer, s.d.block)
	proxies, _ := forwardedBy(all)
	if n.proxies = unique(append(n.proxies, proxies...)); len(proxies) > 0 && n.trusting == nil {
		n.trusting = &all[slices.IndexFunc(all, func(d directive) bool { return d.name() == "set_real_ip_from" })]
	}
}

// realIP reads how a server knows its clients, which are not known if others have further proxies.
func (t *inServer) realIP(all []directive, l *level) {
	proxies, field := forwardedBy(all)
	if len(proxies) < len(t.proxies) {
		l.address = t.trusting
	}
	for i := range all {
		switch d := &all[i]; {
		case d.name() != "set_real_ip_from" || field == "":
		case field == "proxy_protocol":
			l.address = d
			t.note(d.line, "set_real_ip_from is left out: want proxy_protocol in [[listen]]")
		default:
			l.address = d
			t.note(d.line, "set_real_ip_from is left out: trusted_proxies are for X-Forwarded-For, not %s", field)
		}
	}
}

// access translates allow and deny, of which nginx's first that matches counts.
func (t *inServer) access(l *level) {
	all := l.access
	if len(all) == 0 {
		return
	}
	var allow, deny []string
	last := &all[len(all)-1]
	for i := range all {
		d := &all[i]
		switch client := strings.TrimSuffix(d.arg(0), ":"); {
		case client == "all":
			if i < len(all)-1 {
				t.note(d.line, "%s all comes before other rules, which never apply", d.name())
			}
			last = d
		case d.name() == "allow":
			allow = append(allow, client)
		default:
			deny = append(deny, client)
			if slices.ContainsFunc(allow, func(a string) bool { return overlap(a, client) }) {
				t.note(d.line, "deny %s comes after allow of some of them, whom it refuses in chert too", client)
			}
		}
		if last == d && i < len(all)-1 {
			break
		}
	}
	if last.name() == "allow" || last.arg(0) != "all" {
		if allow != nil && deny == nil && last.arg(0) != "all" {
			t.note(last.line, "allow without deny all refuses nobody; it is left out")
		}
		allow = nil
	} else if allow == nil {
		deny = []string{"all"}
	}
	address := l.address
	if address == nil && t.own != nil {
		address = t.own.address
	}
	if address != nil && (allow != nil || deny != nil && deny[0] != "all") {
		t.denied(address, l)
	}
	if allow != nil {
		l.key("allow", list(allow))
	}
	if deny != nil {
		l.key("deny", list(deny))
	}
}

// overlap reports whether a client can be in both of two addresses or prefixes.
func overlap(a, b string) bool {
	x, xErr := prefix(a)
	y, yErr := prefix(b)
	return xErr == nil && yErr == nil && x.Overlaps(y) || a == b
}

func prefix(s string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(s); err == nil {
		return addr.Prefix(addr.BitLen())
	}
	return netip.ParsePrefix(s)
}

// replaces makes r keep nothing of what a location of nginx replaces, or does not inherit: all rules of
// access by any, and try_files.
func (t *inServer) replaces(r *route, access, files bool) {
	if access && hasKey(t.site.keys, "allow") && !hasKey(r.keys, "allow") {
		r.key("allow", list([]string{"all"}))
	}
	if access && !t.guarded && hasKey(t.site.keys, "deny") && !hasKey(r.keys, "deny") {
		r.key("deny", "[]")
	}
	if files && hasKey(t.site.keys, "try") && !hasKey(r.keys, "try") {
		r.key("try", "[]")
	}
}

// restriction reports whether directives say who may have something by address, and by password.
func restriction(all []directive) (access, auth bool) {
	for i := range all {
		switch d := &all[i]; d.name() {
		case "deny":
			access = true
		case "auth_basic":
			auth = d.arg(0) != "off"
		}
	}
	return access, auth
}

// inherits reports whether a location has rules of the server about clients.
func (t *inServer) inherits(d *directive) bool {
	access, auth := restriction(t.around)
	return access && !has(d.block, "deny") && !has(d.block, "allow") || auth && !has(d.block, "auth_basic")
}

// relaxes reports whether a location may admit clients that the server does not.
func (t *inServer) relaxes(d *directive) bool {
	access, auth := restriction(t.around)
	own := slices.DeleteFunc(slices.Clone(d.block), func(in directive) bool {
		return in.name() != "allow" && in.name() != "deny"
	})
	_, asks := restriction(d.block)
	return access && len(own) > 0 && !deniesAll(own) ||
		auth && (has(d.block, "auth_basic") && !asks || has(d.block, "auth_basic_user_file"))
}

// relaxed reports whether a location has rules of the server, and the one that is for its path without it relaxes them.
func (t *inServer) relaxed(d *directive, path string) bool {
	var in *directive
	longest := ""
	for i := range t.around {
		o := &t.around[i]
		prefix := o.words[len(o.words)-1]
		if o.name() == "location" && (len(o.words) == 2 || o.arg(0) == "^~") && strings.HasPrefix(path, prefix) &&
			len(prefix) > len(longest) && &o.words[0] != &d.words[0] {
			in, longest = o, prefix
		}
	}
	return in != nil && t.inherits(d) && t.relaxes(in)
}

// strict keeps from a route that relaxes the server's rules what locations with regular expressions have, for which
// those hold.
func (t *inServer) strict(r *route) {
	path, _ := r.path()
	for i := range t.stricter {
		d := &t.stricter[i]
		patterns, so := endings(d.arg(1)), "its names are hidden there"
		if patterns == nil {
			so = "nobody may have that: deny is \"all\""
			r.key("deny", nobody)
		}
		t.note(d.line, "location %s has the server's rules about clients, and %s others: %s", d.arg(1), path, so)
		r.strict = append(r.strict, patterns...)
	}
}

// kept makes what has been kept from some, or denied to all, hold for what has been translated before.
func (t *inServer) kept() {
	if hasKey(t.site.keys, "proxy") {
		t.site.hidden = t.matched // there are no files
	}
	for _, r := range t.site.routes {
		if !r.sole {
			r.hidden = append(r.hidden, t.matched...)
		}
		// What is forwarded, or the file, may not have the beginning of the path.
		begin, _, _ := strings.Cut(strings.TrimPrefix(r.keys[0], `path = "/`), "/{path...}")
		begin = strings.TrimSuffix(begin, `"`)
		if all, err := filename.NewSet(r.hidden); err == nil && all.Has(begin) ||
			slices.Contains(r.hidden, dotfiles) && filename.Dotfile(begin) {
			r.key("deny", nobody)
		}
		if r.relaxes && !r.sole {
			t.strict(r)
		}
	}
	if !t.guarded {
		return
	}
	for _, r := range t.site.routes {
		r.keys = slices.DeleteFunc(r.keys, func(line string) bool { return line == "deny = []" })
	}
}
