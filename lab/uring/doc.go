// Package uring is as much of io_uring as a small server needs: setting one up, submitting, completions, and a ring of
// buffers for what is received. Server, in its folder, is that server, on a ring or on epoll.
package uring
