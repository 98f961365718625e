// Package systemd speaks with the service manager that has started the process: it tells that the
// service is ready, reloads, stops or lives (sd_notify), and finds the sockets that it has passed
// (socket activation). Without a service manager it does nothing.
package systemd

// It knows the environment variables and datagrams of sd_notify(3) and sd_listen_fds(3), and
// nothing of servers.
