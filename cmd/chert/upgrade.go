package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
)

const upgradeLong = `Let the program that is now installed take over from a running server, without a
refused connection or a failed request. SOCKET is the one of its --control.

The server starts the file that is now at its own path, with its own arguments,
and passes its listening sockets. Once the new process serves, and has not ended
for two seconds, the old one stops accepting and ends its connections over its
--shutdown-timeout. If the new one ends, does not accept its configuration or is
not ready within a minute, the old one goes on serving, and the reason is printed
here and in the server's log. The exit code is 1 then.

SIGUSR2 has the server do the same. It needs Linux or macOS, and a server that is
not process 1 of a container.`

func newUpgradeCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "upgrade SOCKET",
		Short: "Replace a running server by the installed version",
		Long:  upgradeLong,
		Example: "  chert serve /srv/www --control /run/chert/control\n" +
			"  chert upgrade /run/chert/control",
		Args: func(_ *cobra.Command, args []string) error {
			switch len(args) {
			case 0:
				return errors.New("no socket given; it is the one of --control of the server. Without one: " +
					"kill -USR2 PID")
			case 1:
				return checkControl(args[0])
			}
			return errors.New("one socket at most")
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := requestUpgrade(context.Background(), args[0])
			if err != nil {
				return failure{err}
			}
			fmt.Fprintln(cmd.OutOrStdout(), "chert: "+text)
			return nil
		},
	}
}

// maxControl bounds an answer of the control socket.
const maxControl = 64 << 10

// requestUpgrade returns what the server says of an upgrade, or why there was none.
func requestUpgrade(ctx context.Context, socket string) (string, error) {
	e, err := parseControl(socket)
	if err != nil {
		return "", err
	}
	t := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", e.address)
	}}
	defer t.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://control/upgrade", nil)
	if err != nil {
		return "", err
	}
	res, err := t.RoundTrip(req)
	if err != nil {
		hint := "is one running with --control " + e.address + "?"
		if errors.Is(err, fs.ErrPermission) {
			hint = "only the server's user may connect, unless --control has the options mode and group"
		}
		return "", fmt.Errorf("cannot reach a server at the socket %s: %w; %s", quote(e.address), cause(err), hint)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxControl))
	if err != nil {
		return "", fmt.Errorf("the server at the socket %s ended while it was asked: %w", quote(e.address), err)
	}
	text := strings.TrimSpace(string(b))
	switch res.StatusCode {
	case http.StatusOK:
		return text, nil
	case http.StatusConflict:
		return "", fmt.Errorf("upgrade: %s; the server goes on as before", text)
	}
	return "", fmt.Errorf("%s is not the socket of --control of a chert server", quote(e.address))
}
