//go:build !linux

package load

import (
	"context"
	"errors"
)

func (Sockets) drive(context.Context, []socket) (SocketsResult, error) {
	return SocketsResult{}, errors.New("WebSocket load needs epoll: only on Linux")
}
