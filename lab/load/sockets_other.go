//go:build !linux

package load

import (
	"context"
	"errors"
)

var errEpoll = errors.New("WebSocket load needs epoll: only on Linux")

func (Sockets) drive(context.Context, []socket) (SocketsResult, error) {
	return SocketsResult{}, errEpoll
}

// Room is a set of WebSocket connections that get what is published.
type Room struct{}

// OpenRoom fails.
func OpenRoom(context.Context, string, int) (*Room, error) { return nil, errEpoll }

// Receive fails.
func (*Room) Receive(context.Context, string, int, int) error { return errEpoll }

// Close does nothing.
func (*Room) Close() {}
