// Package outbound tests how requests are forwarded on event loops, by raw bytes on both
// sides: handlers that use direct/wire's Forward with servers that send what a test says.
// The rules of package proxy are tested there.
package outbound
