// Command cluster has several instances share topics through Redis while instances, Redis and
// connections fail at random, and checks what each client has got: complete and in order, or
// with the event that tells of a gap, and nothing twice. It also compares the processor's time
// and the latency with those of one instance.
//
//	go run ./cluster -time 10m -clients 30000 -topics 1000
//
// It runs redis-server as a primary, a replica and a sentinel, and itself as the instances and
// as the clients.
package main

//	main.go      flags, processes
//	instance.go  an instance
//	clients.go   clients, in processes of their own
//	chaos.go     what fails
//	redis.go     the servers of Redis
//	verify.go    what the clients have got
