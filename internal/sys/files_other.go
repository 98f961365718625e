//go:build !linux

package sys

// HaveBeneath is false: files are opened through os.Root, and nothing below is
// ever called.
const HaveBeneath = false

const OpenFile, OpenFolder, OpenPath, OpenLink = 0, 0, 0, 0

func OpenBeneath(dir int, name string, flags int) (int, Errno)    { return -1, 1 }
func OpenStraight(dir int, name string, flags int) (int, Errno)   { return -1, 1 }
func ReadLink(fd int) (string, Errno)                             { return "", 1 }
func StatAt(dir int, name string, follow bool, s *FileStat) Errno { return 1 }
func StatFd(fd int, s *FileStat) Errno                            { return 1 }
func ReadFile(fd int, p []byte) (int, Errno)                      { return 0, 1 }
func (s *FileStat) IsFolder() bool                                { return false }
func (s *FileStat) IsRegular() bool                               { return false }
func (s *FileStat) IsLink() bool                                  { return false }
