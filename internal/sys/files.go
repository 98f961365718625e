package sys

// FileStat is what distinguishes one content of a file from another. Times are
// in nanoseconds since 1970.
type FileStat struct {
	Dev, Ino     uint64
	Mode         uint32 // type and permissions, in the system's form
	Size         int64
	Mtime, Ctime int64
	Links        uint64 // names of it; 0 once it is unlinked
}
