// Package lossy is a network that delays packets and loses some of them, with a bottleneck and its queue, between two
// TUN devices: for kernels without netem. Whatever IP carries crosses it, in packets as the devices' MTU allows: the
// kernel divides what programs gave it in larger pieces, as these devices announce no offload.
//
// Which packets are lost is decided by a seed and the packet's number in its direction. When a packet is delivered
// depends on the machine too: Counts says how late packets were.
package lossy
