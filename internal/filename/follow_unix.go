//go:build unix

package filename

// canFollow: Options.Follow is supported.
const canFollow = true
