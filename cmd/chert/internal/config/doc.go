// Package config reads chert's configuration file: TOML that names the sites
// of a server, by host. docs/config.md describes the format.
//
// [Load] finds all that is wrong in one go and says where: syntax, unknown
// keys, types, values, hosts that two sites claim, folders that are not there.
// What it returns can be served.
//
// Values are go-toml's. The positions come from its package unstable, which
// promises no compatibility: positions.go is all that knows it, and go.mod pins
// the version.
//
// The package must not serve, listen, or know signals and flags. What only the
// command can judge, such as an address to listen on, it is given a function
// for. Only cmd/chert may import it.
package config
