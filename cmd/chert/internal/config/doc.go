// Package config reads chert's configuration file: TOML that describes the
// sites of a server, by host. docs/config.md describes the format.
//
// [Load] reports all mistakes at once, with their positions: syntax, unknown
// keys, types, values, hosts that two sites claim, folders that do not exist.
// The Config that it returns can be served.
package config

// Values are decoded by go-toml. Their positions come from its package unstable,
// which promises no compatibility: only positions.go uses it, and go.mod pins the
// version.
//
// The package must not serve, listen, or depend on signals and flags. Functions of
// the command check what only the command can, such as an address to listen on.
// Only cmd/chert may import the package.
