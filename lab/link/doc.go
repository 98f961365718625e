// Package link lets servers be reached over a pair of interfaces instead of loopback: they run in a network namespace
// of their own. Loopback has an MTU of 64 KiB and the congestion control of the whole machine; here both can be chosen,
// and with package lossy a distance, losses and a bottleneck. It needs Linux, root, and iproute2.
package link
