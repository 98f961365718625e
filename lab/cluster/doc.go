// Command cluster has several instances share topics through Redis or NATS while instances,
// servers of the store and connections fail at random, and checks what each client has got:
// complete and in order, or with the event that tells of a gap, and nothing twice. It also
// compares the processor's time and the latency with those of as many instances that have
// topics in memory.
//
//	go run ./cluster -time 10m -clients 30000 -topics 1000
//	go run ./cluster -time 10m -clients 6000 -topics 200 -rate 100 -store nats
//	go run ./cluster -rounds 14 -quiet 3s
//
// The last compares only, with all instances and clients there at once and in short turns, for machines
// that have other work.
//
// It runs redis-server as a primary, a replica and a sentinel, and itself as a cluster of three
// servers of NATS, as the instances and as the clients.
package main

//	main.go      flags, processes
//	instance.go  an instance
//	clients.go   clients, in processes of their own
//	chaos.go     what fails, and what is asked of a store
//	redis.go     the servers of Redis
//	nats.go      those of NATS
//	compare.go   what a delivery costs, in turns
//	verify.go    what the clients have got
