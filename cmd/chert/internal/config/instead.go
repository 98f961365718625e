package config

import "strings"

// instead is the replacement for a flag or a key of other servers that chert
// does not have; "" where there is none.
type instead struct{ flag, key string }

// insteadOf is by name, with "_" for "-".
var insteadOf = map[string]instead{
	"tls": onTLS, "cert": onTLS, "certificate": onTLS, "https": onTLS, "ssl": onTLS, "acme": onTLS,
	"port": onPort, "p": {flag: onPort.flag},
	"host": onHost, "bind": onHost, "address": onHost, "addr": onHost,
	"root": folder, "dir": folder, "directory": folder, "d": folder,
	"cors": {flag: "use --header 'Access-Control-Allow-Origin: *'"},
}

var (
	onTLS = instead{
		"chert serve has --tls-cert with --tls-key, --tls-self and --tls-auto; docs/tls.md describes them",
		"want tls_cert with tls_key, tls_self or tls_auto; docs/tls.md describes them",
	}
	// For the port alone: other servers have the address's keys in a site.
	onPort = instead{"use --listen :8080, or --listen 8080 for this machine only", `want listen = ":8080"`}
	onHost = instead{flag: "use --listen HOST:PORT"}
	folder = instead{flag: `the folder has no flag, as in "chert serve DIR"`}
)

// InsteadOfFlag suggests a replacement for a flag of other servers that chert
// does not have, "" if there is none.
func InsteadOfFlag(name string) string {
	return insteadOf[strings.ReplaceAll(name, "-", "_")].flag
}

// insteadOfKey does so for a key, as the end of a message.
func insteadOfKey(name string) string {
	hint := insteadOf[strings.ReplaceAll(name, "-", "_")].key
	if hint != "" {
		hint = "; " + hint
	}
	return hint
}
