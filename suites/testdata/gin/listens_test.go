package gin

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"
)

// waitListens waits until a server listens at an address. With UDP that is when a packet is not refused.
func waitListens(t *testing.T, network, addr string) {
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		err := reach(network, addr)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func reach(network, addr string) error {
	c, err := net.Dial(network, addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if network != "udp" {
		return nil
	}
	if _, err := c.Write([]byte{0}); err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		return err
	}
	if _, err = c.Read(make([]byte, 1)); errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return nil
}
