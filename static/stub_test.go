package static

import (
	"os"
	"sync/atomic"
)

// stub is a source that fails where a test says so.
type stub struct {
	source
	peeks, opens atomic.Int32
	onOpen       func(name string) error
	onPeek       func(name string) error
	onStat       func(name string) error
	onRead       func(name string) error // called before each read
	onFileStat   func(name string) error
}

func (s *stub) stat(name string) (stat, error) {
	if s.onStat != nil {
		if err := s.onStat(name); err != nil {
			return stat{}, err
		}
	}
	return s.source.stat(name)
}

func (s *stub) peek(name string) (stat, error) {
	s.peeks.Add(1)
	if s.onPeek != nil {
		if err := s.onPeek(name); err != nil {
			return stat{}, err
		}
	}
	return s.source.peek(name)
}

func (s *stub) open(name string) (file, stat, error) {
	s.opens.Add(1)
	if s.onOpen != nil {
		if err := s.onOpen(name); err != nil {
			return nil, stat{}, err
		}
	}
	f, st, err := s.source.open(name)
	if err != nil {
		return nil, st, err
	}
	return &stubFile{f, s, name}, st, nil
}

type stubFile struct {
	file
	s    *stub
	name string
}

func (f *stubFile) Read(p []byte) (int, error) {
	if f.s.onRead != nil {
		if err := f.s.onRead(f.name); err != nil {
			return 0, err
		}
	}
	return f.file.Read(p)
}

func (f *stubFile) stat() (stat, error) {
	if f.s.onFileStat != nil {
		if err := f.s.onFileStat(f.name); err != nil {
			return stat{}, err
		}
	}
	return f.file.stat()
}

func (f *stubFile) disk() *os.File { return f.file.disk() }
