// Package sys contains chert's raw system calls, one file per operating system.
//
// Every call here is on a non-blocking descriptor or cannot block by nature,
// except EpollWait and EpollWaitKeeping, which wait for events, Sendfile and the
// calls on files, which may wait for the disk, and Relay, which reads from
// sockets of other owners. On Linux those that cannot block use RawSyscall: the
// scheduler's enter and exit hooks exist for calls that may block and cost more
// than a short socket call gains from them. EpollWaitKeeping uses it too and
// keeps its processor while it waits, which callers must limit to about a
// millisecond; nothing else here blocks without the scheduler (docs/adr/0004).
package sys

// It is the only package that may import golang.org/x/sys. It knows
// descriptors and error numbers; it must not know connections, loops or HTTP.
// Everything from poll to the root may import it, and static for its files.
