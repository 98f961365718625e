package adapt

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// inServer translates the directives of a server block.
type inServer struct {
	*nginx
	site *site
	root string
	// folders are those of locations that requests cannot reach, by path.
	folders map[string]string
	whole   bool        // a route is for all that no other is for
	alone   bool        // only location / becomes more than rules for files
	guarded bool        // deny is "all" in place of a directive that is left out
	around  []directive // what locations inherit
}

func (t *inServer) read(all []directive) {
	s := t.site
	for i := range all { // what locations need
		if all[i].name() == "root" {
			t.root = all[i].arg(0)
		}
	}
	t.folders, t.around = t.internal(all), all
	t.alone = !slices.ContainsFunc(all, func(d directive) bool {
		return d.name() == "location" && d.arg(0) != "/" && t.folders[d.arg(1)] == "" && !onlyFields(d.block) &&
			!strings.HasPrefix(d.arg(0), "~")
	})
	var returned, served bool
	var access []directive
	for i := range all {
		d := &all[i]
		switch d.name() {
		case "listen", "server_name":
		case "root":
			served = true
		case "location": // below: what the server has comes first
		case "return":
			returned = true
			t.returnAll(d, all)
		case "allow", "deny":
			access = append(access, *d)
		case "error_page":
			t.errorPage(d, s.table)
		default:
			t.common(d, s.key, s.table, s.headers)
		}
	}
	t.access(access, s.key)
	own := len(s.headers) > 0
	for i := range all {
		d := &all[i]
		if d.name() != "location" {
			continue
		}
		t.location(d)
		if own && has(d.block, "add_header") {
			t.note(d.line, "add_header of a location replaces those of the server; here both are set")
		}
	}
	t.headers(s.headers, "site", s.key, s.table)
	if served && !returned && !t.whole && s.name == "site" {
		s.keys = slices.DeleteFunc(s.keys, func(line string) bool { return strings.HasPrefix(line, "root = ") })
		s.keys = append([]string{"root = " + quote(t.root)}, s.keys...)
	}
}

// internal returns folders. Files of the site's own are hidden: error pages are read apart.
func (t *inServer) internal(all []directive) map[string]string {
	found := make(map[string]string)
	for i := range all {
		d := &all[i]
		if d.name() != "location" || d.arg(0) != "=" || !has(d.block, "internal") {
			continue
		}
		found[d.arg(1)] = t.root
		for _, in := range d.block {
			if in.name() == "root" {
				found[d.arg(1)] = in.arg(0)
			}
		}
		if found[d.arg(1)] == t.root && strings.Trim(d.arg(1), "/") != "" {
			t.site.hidden = append(t.site.hidden, d.arg(1))
		}
	}
	return found
}

func has(all []directive, name string) bool {
	return slices.ContainsFunc(all, func(d directive) bool { return d.name() == name })
}

// returnAll is return of a whole server: a redirect of all its hosts.
func (t *inServer) returnAll(d *directive, all []directive) {
	status, to, ok := returned(d)
	if has(all, "location") {
		t.note(d.line, "return of a server answers before its locations; it is left out")
		return
	}
	if ok && to != "" {
		t.site.name = "redirect"
		t.site.keys = nil
		t.site.key("to", quote(to))
		t.site.key("status", status)
		return
	}
	if _, isStatus := number(d.arg(0)); isStatus && d.arg(1) == "" && len(d.arg(0)) == 3 {
		r := new(route)
		r.key("path", quote("/"))
		r.key("respond", d.arg(0))
		t.site.routes = append(t.site.routes, r)
		return
	}
	t.unknown(d)
}

// placeholders are variables that targets of redirects have too.
var placeholders = strings.NewReplacer("$request_uri", "{uri}", "$host", "{host}", "$http_host", "{host}",
	"$server_name", "{host}")

// returned reads a return that redirects.
func returned(d *directive) (status, to string, ok bool) {
	status, to = d.arg(0), d.arg(1)
	if len(d.words) == 2 && strings.HasPrefix(status, "http") {
		status, to = "302", status
	}
	if !slices.Contains([]string{"301", "302", "303", "307", "308"}, status) {
		return "", "", false
	}
	to = placeholders.Replace(to)
	return status, to, to != "" && !strings.Contains(to, "$")
}

// access translates allow and deny, of which nginx's first that matches counts.
func (t *inServer) access(all []directive, key func(key, value string)) {
	var allow, deny []string
	for i := range all {
		d := &all[i]
		switch {
		case d.name() == "deny" && d.arg(0) == "all":
			if i < len(all)-1 {
				t.note(d.line, "deny all comes before other rules, which never apply")
			}
			if allow == nil {
				deny = append(deny, "all")
			}
		case d.name() == "allow" && d.arg(0) == "all" && i == len(all)-1 && allow == nil:
		case d.name() == "deny" && allow != nil:
			t.note(d.line, "deny %s comes after allow: the first rule that matches counts in nginx, deny in chert",
				d.arg(0))
		case d.name() == "deny":
			deny = append(deny, strings.TrimSuffix(d.arg(0), ":"))
		default:
			allow = append(allow, strings.TrimSuffix(d.arg(0), ":"))
		}
	}
	if last := len(all) - 1; allow != nil && (all[last].name() != "deny" || all[last].arg(0) != "all") {
		t.note(all[last].line, "allow without deny all refuses nobody; it is left out")
		allow = nil
	}
	if allow != nil {
		key("allow", list(allow))
	}
	if deny != nil {
		key("deny", list(deny))
	}
}

// headers writes the fields that add_header has: with always for all responses.
func (t *inServer) headers(all map[string]string, table string, key func(key, value string),
	tables func(name string, lines ...string)) {
	var always, some []string
	for _, name := range slices.Sorted(mapsKeys(all)) {
		value, forAll := strings.CutPrefix(all[name], "always ")
		line := quote(name) + " = " + quote(value)
		if forAll {
			always = append(always, line)
		} else {
			some = append(some, line)
		}
	}
	if always != nil {
		key("headers", "{ "+strings.Join(always, ", ")+" }")
	}
	if some != nil {
		tables("["+table+".response_headers]", `status = ["2xx", "3xx"]`, "set = { "+strings.Join(some, ", ")+" }")
	}
}

func mapsKeys(all map[string]string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range all {
			if !yield(k) {
				return
			}
		}
	}
}

var maxAge = regexp.MustCompile(`^max-age=([0-9]+)(; *includeSubDomains)?(; *preload)?$`)

// common translates what servers and locations both have. headers gets the fields of add_header.
func (t *inServer) common(d *directive, key func(key, value string), table func(name string, lines ...string),
	headers map[string]string) {
	switch name, v := d.name(), d.arg(0); {
	case slices.Contains(unneeded, name):
		if name == "default_type" && !strings.HasPrefix(v, "text/plain") && v != "application/octet-stream" {
			t.note(d.line, "default_type is left out: want types")
		}
	case name == "autoindex":
		if v == "on" {
			key("listing", "true")
		}
	case name == "index":
		if v != "index.html" {
			key("index", list(d.words[1:]))
		}
	case name == "add_header":
		t.field(d, key, headers)
	case name == "expires":
		t.expires(d, headers)
	case name == "auth_basic" && v == "off":
		key("basic_auth", "false")
	case name == "auth_basic":
		key("basic_auth.realm", quote(v))
	case name == "auth_basic_user_file":
		key("basic_auth.htpasswd", quote(v))
	case name == "access_log" && v == "off":
		key("log", quote("off"))
	case name == "access_log":
		key("log", "{ file = "+quote(v)+`, format = "combined" }`)
	case name == "try_files":
		t.tryFiles(d, key)
	case name == "rewrite":
		t.rewrite(d, table)
	case slices.Contains(proxied, name), slices.Contains(untouched, name): // of those that forward
	case slices.Contains(guards, name):
		t.unknown(d)
		t.note(d.line, "%s says who may have it, so nobody may: deny is \"all\"", name)
		key("deny", list([]string{"all"}))
		t.guarded = true
	default:
		if !t.limit(d, key) && !t.connection(d, key) {
			t.unknown(d)
		}
	}
}

// field translates add_header.
func (t *inServer) field(d *directive, key func(key, value string), headers map[string]string) {
	name, value := d.arg(0), d.arg(1)
	switch {
	case strings.EqualFold(name, "Alt-Svc") && t.quic: // chert has its own
	case strings.EqualFold(name, "Strict-Transport-Security"):
		m := maxAge.FindStringSubmatch(value)
		if m == nil {
			t.unknown(d)
			return
		}
		key("hsts", quote(m[1]+"s"))
		if m[2] != "" {
			key("hsts_subdomains", "true")
		}
	case name == "":
		t.unknown(d)
	case strings.Contains(value, "$"):
		t.note(d.line, "add_header %s is left out: values have no variables", name)
	case slices.Contains(d.words, "always"):
		headers[name] = "always " + value
	default:
		headers[name] = value
	}
}

// limit translates limits of requests and responses, and reports whether d is one.
func (t *inServer) limit(d *directive, key func(key, value string)) bool {
	v := d.arg(0)
	number, unit := strings.TrimRight(v, "kKmMgG"), strings.ToUpper(strings.TrimLeft(v, "0123456789"))
	if unit != "" {
		unit += "i"
	}
	switch d.name() {
	case "client_max_body_size":
		if number != "0" {
			key("limits.body", quote(number+unit+"B"))
		}
	case "limit_rate":
		key("limits.bandwidth", quote(number+unit+"B"))
	case "limit_rate_after":
		key("limits.bandwidth_after", quote(number+unit+"B"))
	case "limit_req":
		if limit, ok := t.rate(d); ok {
			key("limits.rate", quote(limit))
		}
	default:
		return false
	}
	return true
}

// connection translates what is about connections, and reports whether d is.
func (t *inServer) connection(d *directive, key func(key, value string)) bool {
	switch v := d.arg(0); d.name() {
	case "set_real_ip_from":
		t.proxies = unique(append(t.proxies, strings.TrimSuffix(v, ":")))
	case "real_ip_recursive":
	case "real_ip_header":
		return strings.EqualFold(v, "X-Forwarded-For")
	case "keepalive_timeout":
		if n, ok := number(strings.TrimSuffix(v, "s")); ok && n > 0 && !slices.ContainsFunc(t.head, isIdle) {
			t.head = append(t.head, "idle_timeout = "+quote(strconv.Itoa(n)+"s"))
		}
	case "ssl_certificate":
		key("tls_cert", quote(v))
	case "ssl_certificate_key":
		key("tls_key", quote(v))
	case "ssl_client_certificate":
		key("client_ca", quote(v))
	case "ssl_verify_client":
		if v == "optional" {
			key("client_certificate", quote(v))
		}
	case "ssl_protocols":
		if slices.Equal(d.words[1:], []string{"TLSv1.3"}) {
			key("tls_min", quote("1.3"))
		}
	default:
		return false
	}
	return true
}

// guards are directives about who may have something. Without them it would be open to all.
var guards = strings.Fields(`auth_request auth_jwt auth_delay satisfy secure_link secure_link_md5 valid_referers
	auth_ldap auth_pam js_access access_by_lua_block access_by_lua_file limit_except`)

func isIdle(line string) bool { return strings.HasPrefix(line, "idle_timeout") }

// expires is a Cache-Control of so many seconds.
func (t *inServer) expires(d *directive, headers map[string]string) {
	v := d.arg(0)
	units := map[byte]int{'s': 1, 'm': 60, 'h': 3600, 'd': 86400, 'w': 7 * 86400, 'M': 30 * 86400, 'y': 365 * 86400}
	switch {
	case v == "max":
		headers["Cache-Control"] = "max-age=315360000"
	case v == "off":
	case v == "epoch" || v == "-1":
		headers["Cache-Control"] = "no-cache"
	default:
		if v == "" {
			t.unknown(d)
			return
		}
		n, ok := number(v[:len(v)-1])
		if unit := units[v[len(v)-1]]; ok && unit > 0 && n < 1<<20 {
			headers["Cache-Control"] = "max-age=" + strconv.Itoa(n*unit)
			return
		}
		t.unknown(d)
	}
}

// tryFiles translates try_files: names of files, of which the last may be a status.
func (t *inServer) tryFiles(d *directive, key func(key, value string)) {
	var all []string
	for i, w := range d.words[1:] {
		w = strings.ReplaceAll(w, "$uri", "{path}")
		if w == "" {
			continue
		}
		switch {
		case strings.ContainsAny(w, "$@?"):
			t.note(d.line, "try_files %s is left out: want try, with {path} and names of files", w)
			return
		case w[:min(1, len(w))] == "=" && i < len(d.words)-2:
			t.note(d.line, "try_files has a status that is not the last")
			return
		}
		all = append(all, w)
	}
	if slices.Equal(all, []string{"{path}", "=404"}) || slices.Equal(all, []string{"{path}", "{path}/", "=404"}) {
		return // what a folder does
	}
	key("try", list(all))
}

var captures = regexp.MustCompile(`\$([1-9])`)

// rewrite translates rewrite, without a redirect.
func (t *inServer) rewrite(d *directive, table func(name string, lines ...string)) {
	redirects := strings.HasPrefix(d.arg(1), "http") || d.arg(2) == "redirect" || d.arg(2) == "permanent"
	_, err := regexp.Compile(d.arg(0))
	if err != nil || len(d.words) < 3 || redirects || strings.Contains(captures.ReplaceAllString(d.arg(1), ""), "$") {
		t.note(d.line, "rewrite is left out: want [[site.rewrite]] or a route with redirect")
		return
	}
	table("[site.rewrite]", "from = "+quote(d.arg(0)), "to = "+quote(captures.ReplaceAllString(d.arg(1), "{$1}")))
}

// errorPage translates error_page with a file.
func (t *inServer) errorPage(d *directive, table func(name string, lines ...string)) {
	last := len(d.words) - 1
	uri := d.words[last]
	root, ok := t.folders[uri]
	if !ok {
		root = t.root
	}
	if !strings.HasPrefix(uri, "/") || strings.Contains(uri, "$") {
		t.note(d.line, "error_page is left out: want the name of a file")
		return
	}
	var lines []string
	for _, status := range d.words[1:last] {
		if n, ok := number(status); !ok || n < 400 || n > 599 {
			t.note(d.line, "error_page %s is left out: pages have the status of the error", status)
			continue
		}
		lines = append(lines, status+" = "+quote(join(root, uri)))
	}
	if lines != nil {
		table("site.errors", lines...)
	}
}
