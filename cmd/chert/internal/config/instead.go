package config

import "strings"

// instead is what to use for words that others have for a flag or a key, and
// chert does not; "" where it is no help.
type instead struct{ flag, key string }

// insteadOf has the words with "_" for "-".
var insteadOf = map[string]instead{
	"tls": noTLS, "tls_cert": noTLS, "tls_key": noTLS, "cert": noTLS, "certificate": noTLS, "https": noTLS, "ssl": noTLS, "acme": noTLS,
	"port": onPort, "p": {flag: onPort.flag},
	"host": onHost, "bind": onHost, "address": onHost, "addr": onHost,
	"root": folder, "dir": folder, "directory": folder, "d": folder,
	"cors": {flag: "use --header 'Access-Control-Allow-Origin: *'"},
}

var (
	noTLS = instead{withoutTLS, withoutTLS}
	// Of the port alone: the keys that others have for the address are for a site.
	onPort = instead{"use --listen :8080, or --listen 8080 for this machine only", `want listen = ":8080"`}
	onHost = instead{flag: "use --listen HOST:PORT"}
	folder = instead{flag: `the folder has no flag, as in "chert serve DIR"`}
)

const withoutTLS = "chert serve has no TLS yet: put a proxy that has it in front (docs/proxy.md)"

// InsteadOfFlag says what to use for a flag that others have and chert does not,
// "" if it has nothing to say.
func InsteadOfFlag(name string) string {
	return insteadOf[strings.ReplaceAll(name, "-", "_")].flag
}

// insteadOfKey is that for a key, as the end of a message.
func insteadOfKey(name string) string {
	hint := insteadOf[strings.ReplaceAll(name, "-", "_")].key
	if hint != "" {
		hint = "; " + hint
	}
	return hint
}
