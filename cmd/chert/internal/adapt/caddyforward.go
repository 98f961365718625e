package adapt

import "strings"

// asked returns the lines of a table forward_auth, nil if a directive says what that does not have: it asks one server,
// at one path, and passes fields of the answer on under their own names.
func asked(d *directive, args []string) (lines []string) {
	if len(args) != 1 {
		return nil
	}
	addr, secure, h2, ok := caddyAddress(args[0])
	if !ok || h2 || hasVariable(args[0]) {
		return nil
	}
	uri := ""
	var fields []string
	for i := range d.block {
		switch in := &d.block[i]; {
		case in.name() == "uri" && len(in.words) == 2:
			uri = in.arg(0)
		case in.name() == "copy_headers":
			fields = append(fields, in.words[1:]...)
			for j := range in.block {
				if len(in.block[j].words) != 1 {
					return nil
				}
				fields = append(fields, in.block[j].name())
			}
		default:
			return nil
		}
	}
	if !strings.HasPrefix(uri, "/") || strings.ContainsAny(uri, "{} #") {
		return nil
	}
	for _, name := range fields {
		if !fieldName(name) {
			return nil
		}
	}
	scheme, socket := "http://", ""
	if secure {
		scheme = "https://"
	}
	if path, unix := strings.CutPrefix(addr, "unix:"); unix {
		addr, socket = "localhost", path
	}
	lines = []string{"url = " + quote(scheme+addr+uri)}
	if socket != "" {
		lines = append(lines, "socket = "+quote(socket))
	}
	if fields = unique(fields); len(fields) > 0 {
		lines = append(lines, "headers = "+list(fields))
	}
	return lines
}

// tried notes that Caddy asks about the name that try_files has found, and chert about what the client has sent.
func (c *caddy) tried(block []directive) {
	asks, try := -1, false
	for i := range block {
		if block[i].name() == "forward_auth" {
			asks = i
		}
		try = try || block[i].name() == "try_files"
	}
	if try && asks >= 0 {
		c.note(block[asks].line, "forward_auth is asked about the path that the client has sent; in Caddy about what "+
			"try_files has made of it")
	}
}

// servers reads the global option: of it, who the proxies in front are.
func (c *caddy) servers(d *directive, all []directive) {
	other := named(d.block, "client_ip_headers") != nil // the address is not in X-Forwarded-For, or not there alone
	for i := range d.block {
		in := &d.block[i]
		if in.name() != "trusted_proxies" || other || len(d.words) > 1 || in.arg(0) != "static" || len(in.words) < 3 {
			c.unknown(in)
			continue
		}
		c.proxies = unique(append(c.proxies, clients(in.words[2:])...))
		if peer := named(all, "remote_ip"); peer != nil {
			c.note(peer.line, "remote_ip is the address of the proxy in Caddy, here that of the client")
		}
	}
}

// named returns the first directive that has a word, in others too.
func named(all []directive, word string) *directive {
	for i := range all {
		for _, w := range all[i].words {
			if w == word {
				return &all[i]
			}
		}
		if in := named(all[i].block, word); in != nil {
			return in
		}
	}
	return nil
}
