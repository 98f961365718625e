// Command mutants puts faults back into the server, one at a time, and runs the simulation on
// each: one that it does not find is a fault that it would not find in new code either.
//
//	go run ./internal/sim/mutants                    all, a minute at most for each
//	go run ./internal/sim/mutants -for 10s lost-mail some
//	go run ./internal/sim/mutants -model ws ws-      with one of the models of clients
//	go run ./internal/sim/mutants -check             whether all of them still apply and compile
//
// A mutant is a patch beside this file. Its first lines, up to the diff, say what it does and
// where the fault comes from. The checkout is not changed: go build's -overlay is.
package main
