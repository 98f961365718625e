// Package sys holds chert's raw system calls, one file per operating system.
//
// It is the only package that may import golang.org/x/sys. It knows
// descriptors and error numbers; it must not know connections, loops or HTTP.
// poll, loop and conn may import it.
//
// Every call here is on a non-blocking descriptor or cannot block by nature.
// On Linux they go through RawSyscall: the scheduler's enter and exit hooks
// exist for calls that may block and cost more than a short socket call
// gains from them.
package sys
