package sys

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// HaveBeneath reports whether OpenBeneath can work on this system. An old
// kernel or a sandbox may still reject it, with ENOSYS or EPERM.
const HaveBeneath = true

// What to open beneath a folder: a file to read, a folder to list, or anything
// only to stat, which has no effect on devices.
const (
	OpenFile   = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_LARGEFILE
	OpenFolder = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_LARGEFILE
	OpenPath   = unix.O_PATH
	OpenLink   = unix.O_PATH | unix.O_NOFOLLOW // a link itself
)

// racedTries is how often a lookup is repeated that a concurrent rename has
// disturbed (openat2(2), EAGAIN).
const racedTries = 16

// OpenBeneath opens name below the folder dir. Links are followed if they stay
// below it; one that leads out is EXDEV. It may wait for the disk.
func OpenBeneath(dir int, name string, flags int) (fd int, e Errno) {
	return openat2(dir, name, flags, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_MAGICLINKS)
}

// OpenStraight is OpenBeneath for a name without links: one that is or leads through a link
// is ELOOP. With OpenLink the last element may be one.
func OpenStraight(dir int, name string, flags int) (fd int, e Errno) {
	return openat2(dir, name, flags, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
}

func openat2(dir int, name string, flags int, resolve uint64) (fd int, e Errno) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: resolve}
	for try := 0; ; {
		fd, err := unix.Openat2(dir, name, &how)
		if err == nil {
			return fd, 0
		}
		e, _ := err.(Errno)
		if e == unix.EAGAIN {
			try++
		}
		if e != unix.EINTR && (e != unix.EAGAIN || try == racedTries) {
			return -1, e
		}
	}
}

// StatAt stats name below the folder dir. Links are followed wherever they
// lead, or not at all. It may wait for the disk.
func StatAt(dir int, name string, follow bool, s *FileStat) Errno {
	flags := unix.AT_SYMLINK_NOFOLLOW
	if follow {
		flags = 0
	}
	var st unix.Stat_t
	for {
		err := unix.Fstatat(dir, name, &st, flags)
		if err == nil {
			s.set(&st)
			return 0
		}
		if err != unix.EINTR {
			e, _ := err.(Errno)
			return e
		}
	}
}

// StatFd stats an open file.
func StatFd(fd int, s *FileStat) Errno {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		e, _ := err.(Errno)
		return e
	}
	s.set(&st)
	return 0
}

// maxLink is the longest target of a link, in bytes (PATH_MAX).
const maxLink = 4096

// ReadLink returns the target of a link that was opened with OpenLink.
func ReadLink(fd int) (to string, e Errno) {
	b := make([]byte, maxLink)
	for {
		n, err := unix.Readlinkat(fd, "", b)
		if err == nil {
			return string(b[:n]), 0
		}
		if err != unix.EINTR {
			e, _ := err.(Errno)
			return "", e
		}
	}
}

func (s *FileStat) set(st *unix.Stat_t) {
	*s = FileStat{
		Dev: uint64(st.Dev), Ino: st.Ino, Mode: st.Mode, Size: st.Size,
		Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(), Links: uint64(st.Nlink),
	}
}

// ReadFile reads from a regular file, which moves its offset. It may wait for
// the disk, so it goes through the scheduler.
func ReadFile(fd int, p []byte) (n int, e Errno) {
	for {
		n, err := syscall.Read(fd, p)
		if err == nil {
			return n, 0
		}
		if err != unix.EINTR {
			e, _ := err.(Errno)
			return 0, e
		}
	}
}

// IsFolder and IsRegular report the type of the file.
func (s *FileStat) IsFolder() bool  { return s.Mode&unix.S_IFMT == unix.S_IFDIR }
func (s *FileStat) IsRegular() bool { return s.Mode&unix.S_IFMT == unix.S_IFREG }
func (s *FileStat) IsLink() bool    { return s.Mode&unix.S_IFMT == unix.S_IFLNK }
