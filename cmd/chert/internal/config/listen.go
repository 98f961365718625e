package config

import (
	"slices"
	"strings"
)

// Listen is an address to listen on.
type Listen struct {
	Address string // in the form of --listen
	Plain   bool   // plain HTTP, also if sites have certificates
	HTTP1   bool   // no HTTP/2
	HTTP3   bool   // Protocols has it
	// Protocols are given, so that Config.HTTP3 is not for it.
	Protocols bool
	// Proxies are in place of the file's, if not nil. Headers are those whose connections begin
	// with a header of the PROXY protocol.
	Proxies, Headers *Proxies

	at        Position
	tls, http *spot // of tls = true, and of "h2" or "h3"; nil if they are not given
}

// addresses returns those of all.
func addresses(all []Listen) (texts []string) {
	for _, one := range all {
		texts = append(texts, one.Address)
	}
	return texts
}

// listen reads addresses: a string, or a list of strings and tables, as which [[listen]] counts
// too.
func (l *loader) listen(t *table) (all []Listen) {
	v, spot := t.get("listen")
	switch v := v.(type) {
	case nil:
	case string:
		all = l.address(all, Listen{Address: v, at: spot.value})
	case []any:
		if len(v) == 0 {
			l.errorf(spot.key, "listen names no address")
		}
		for i, e := range v {
			at := spot.items[i]
			switch e := e.(type) {
			case string:
				all = l.address(all, Listen{Address: e, at: at.value})
			case map[string]any:
				block := &table{doc: l.doc, name: "[[listen]]", m: e, spot: at}
				if one, ok := l.listenBlock(block); ok {
					all = l.address(all, one)
				}
			default:
				t.wrongType("listen", at.value, "a list of strings or tables", e)
			}
		}
	case map[string]any:
		l.errorf(spot.key, "listen is written with two brackets: [[listen]]")
	default:
		t.wrongType("listen", spot.value, "a string or a list of strings", v)
	}
	return all
}

// address adds one address, if it can be beside all.
func (l *loader) address(all []Listen, one Listen) []Listen {
	text := one.Address
	one.Address = l.endpoint(text)
	if err := l.checks.Listen(addresses(all), one.Address); err != nil {
		l.errorf(one.at, "listen: %q: %v", text, err)
		return all
	}
	return append(all, one)
}

// endpoint makes the path of a socket in an address relative to the file's folder.
func (l *loader) endpoint(text string) string {
	path, ok := strings.CutPrefix(text, "unix:")
	if !ok || path == "" || path[0] == '@' || path[0] == '?' {
		return text
	}
	path, access, _ := strings.Cut(path, "?")
	if text = "unix:" + l.path(path); access != "" {
		text += "?" + access
	}
	return text
}

// listenBlock reads [[listen]]; ok is false if it has no address.
func (l *loader) listenBlock(t *table) (one Listen, ok bool) {
	one.Address, one.at, ok = t.str("address")
	if t.m["address"] == nil {
		l.errorf(t.spot.key, `%s has no address; want address = ":8080"`, t.name)
	}
	tls := true
	t.boolean("tls", &tls)
	if one.Plain = !tls; tls && t.m["tls"] == true {
		one.tls = t.spot.child("tls")
	}
	l.protocols(t, &one)
	one.Proxies, one.Headers = l.proxies(t, "trusted_proxies"), l.proxies(t, "proxy_protocol")
	t.done()
	return one, ok
}

// protocols reads the key of that name.
func (l *loader) protocols(t *table, one *Listen) {
	all, given := t.list("protocols")
	if !given {
		return
	}
	one.HTTP1, one.Protocols = true, true
	var has []string
	for i, it := range all {
		if !slices.Contains([]string{"h1", "h2", "h3"}, it.text) || slices.Contains(has, it.text) {
			l.errorf(it.at, `protocols wants "h1", "h2" and "h3", each once, not %q`, it.text)
			return
		}
		has = append(has, it.text)
		if it.text == "h1" {
			continue
		}
		if it.text == "h2" {
			one.HTTP1 = false
		} else {
			one.HTTP3 = true
		}
		one.http = t.spot.child("protocols")
		if len(one.http.items) > i {
			one.http = one.http.items[i]
		}
	}
	if !slices.Contains(has, "h1") {
		l.errorf(t.spot.child("protocols").key, `protocols wants "h1", alone or with "h2" and "h3"`)
	}
}

// listenTogether checks addresses against the sites, which have certificates or not.
func (l *loader) listenTogether(t *table, all []Listen, on bool) {
	encrypted := false
	for _, one := range all {
		encrypted = encrypted || !one.Plain
		switch {
		case one.tls != nil && !on:
			l.errorf(one.tls.value, "tls = true needs a site with a certificate: tls_cert and tls_key, tls_self or "+
				"tls_auto")
		case one.http != nil && (one.Plain || !on):
			l.errorf(one.http.value, "protocols: HTTP/2 and HTTP/3 are served over TLS only")
		}
	}
	if t.m["http3"] == true && !on {
		l.errorf(t.spot.child("http3").value, "http3 = true needs a site with a certificate: tls_cert and tls_key, "+
			"tls_self or tls_auto")
	}
	if t.m["http3_early_data"] == true && t.m["http3"] != true &&
		!slices.ContainsFunc(all, func(one Listen) bool { return one.HTTP3 }) {
		l.errorf(t.spot.child("http3_early_data").value, "http3_early_data = true needs http3 = true, or \"h3\" among "+
			"the protocols of an address")
	}
	if on && len(all) > 0 && !encrypted {
		l.errorf(t.spot.child("listen").key, "sites have certificates, and no address speaks TLS: each has tls = false")
	}
}
