// Package certs loads certificates and keys from files, explains what is wrong
// with them, and loads them again when the files change.
package certs

// It must not depend on flags, configuration files or servers. Only cmd/chert may
// import it.
