// Package adapt translates configurations of nginx and Caddy into chert's: what it knows, with
// the same meaning, and a note with its line for each directive that it leaves out.
package adapt

// Text in, text out: it opens no file and knows no server. It shares the hints for what chert
// does not have with package config.
//
//	parse.go, adapt.go               text becomes directives, and sites and routes become text
//	include.go                       files that one of nginx includes
//	nginx.go, server.go              http and server blocks; upstream.go upstreams of both programs
//	hosts.go                         which hosts a server has, on which addresses, and redirects to https
//	location.go, matching.go         locations by path, and by regular expression
//	fields.go, paths.go, forward.go  what is in them: header fields, names of files, proxy_pass
//	guard.go                         who may have what, and what is refused when it is left out
//	caddyfile.go, caddyaddress.go    the braces and snippets of a Caddyfile, and where its sites are served
//	variable.go                      variables of the environment in a Caddyfile
//	caddy.go, caddyproxy.go          sites of Caddy, and reverse_proxy; caddyoption.go has its options
//	caddyhandle.go                   handle and handle_path
//	caddyredir.go                    redir
//	caddyextra.go                    header, request_body, log and email of Caddy
//	caddyforward.go                  forward_auth, and trusted_proxies
//	caddyguard.go, caddyauth.go      guard.go for Caddy, and passwords for some paths
