// Package redisstream reads and writes many streams of Redis (XADD, XREAD) for a process: with
// one blocking command for all streams that it reads, without gaps or doubles over cut
// connections, and so that data that Redis has lost is noticed.
package redisstream

// It knows nothing of topics and rooms, which are its users: they implement Sink. It imports
// go-redis, so only packages that need Redis may import it.
//
//	client.go   what a process has of a Redis
//	stream.go   one stream; writes
//	reader.go   reads
//	command.go  the command that reads, as it is sent
//	load.go     the beginning of a stream, and what is left of it after a cut
