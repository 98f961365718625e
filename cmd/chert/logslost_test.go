package main

import (
	"io"
	"reflect"
	"testing"
	"testing/synctest"
	"time"
)

// What tells about lost lines may wait, as a program does that does not read stderr: nothing
// waits for it, and no line is left out or told twice.
func TestLostLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []int64
		goOn := make(chan struct{})
		l := lostLines{say: func(n int64, err error) {
			said = append(said, n)
			<-goOn
		}}
		go l.add(1, io.ErrShortWrite)
		synctest.Wait()
		time.Sleep(2 * lostEvery)
		l.add(2, io.ErrShortWrite) // while the first are told
		l.add(3, io.ErrShortWrite)
		close(goOn)
		synctest.Wait()
		l.add(4, io.ErrShortWrite) // too early
		time.Sleep(lostEvery)
		l.add(5, io.ErrShortWrite)
		l.add(6, io.ErrShortWrite)
		l.report()
		l.report()
		if want := []int64{1, 2 + 3 + 4 + 5, 6}; !reflect.DeepEqual(said, want) {
			t.Errorf("said %v, want %v", said, want)
		}
	})
}
