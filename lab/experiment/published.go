package experiment

import "fmt"

// Whose figures they are.
const (
	flintServer = "Flint (Go)"
	cppServer   = "a C++ server"
	hopServer   = "http-over-polling (Go)"
	rawServer   = "a raw-TCP server (Go)"
	cServer     = "a C server"
)

// published lists every row that the five have published. They are of other machines: what is compared is the shape.
func published() []Figure {
	var all []Figure
	add := func(server, experiment string, rows ...[3]string) {
		for _, row := range rows {
			all = append(all, Figure{ID: fmt.Sprintf("%s %d", server, len(all)), Server: server, Experiment: experiment,
				What: row[0], Published: row[1], Here: row[2]})
		}
	}
	without := func(server, what, published, why string) {
		all = append(all, Figure{ID: fmt.Sprintf("%s %d", server, len(all)), Server: server, What: what, Published: published, Why: why})
	}

	component := func(name, published, key string) [3]string {
		return [3]string{name, published, fmt.Sprintf("chert {%[1]s/chert/ns} ns/op, {%[1]s/chert/bytes} B/op, {%[1]s/chert/allocs} allocs; net/http's {%[1]s/std/ns} ns/op, {%[1]s/std/bytes} B/op, {%[1]s/std/allocs} allocs", key)}
	}
	alone := func(name, published, key string) [3]string {
		return [3]string{name, published, fmt.Sprintf("chert {%[1]s/chert/ns} ns/op, {%[1]s/chert/bytes} B/op, {%[1]s/chert/allocs} allocs", key)}
	}
	add(flintServer, "flint",
		component("parse a GET", "3,147 ns/op, 4,864 B/op, 13 allocs", "parse-get"),
		component("parse a POST", "3,728 ns/op, 5,016 B/op, 18 allocs", "parse-post"),
		component("router, static path", "980 ns/op, 576 B/op, 7 allocs", "router-static"),
		component("router, dynamic path", "1,400 ns/op, 920 B/op, 10 allocs", "router-dynamic"),
		component("router, not found", "1,108 ns/op, 770 B/op, 12 allocs", "router-missing"),
		alone("logger", "497 ns/op, 34 B/op, 3 allocs", "logger"),
		alone("rate limiter", "1,058 ns/op, 189 B/op, 2 allocs", "limiter"),
		alone("logger, auth, limiter, handler", "1,470 ns/op, 864 B/op, 11 allocs", "chain"),
		[3]string{"hey -n 10000 -c 100 with a limiter, HTTPS, worker pool", "4,902 req/s; p50 16.8, p95 53.1, p99 121 ms",
			"its like: {flint/tls/limited/rate} req/s; p50 {flint/tls/limited/p50}, p95 {flint/tls/limited/p95}, p99 {flint/tls/limited/p99} ms; {flint/tls/limited/ok} of 10,000 pass"},
		[3]string{"the same, net/http, HTTP, goroutine per connection", "5,408 req/s; p50 16.0, p95 48.0, p99 74 ms",
			"{nethttp/plain/limited/rate} req/s; p50 {nethttp/plain/limited/p50}, p95 {nethttp/plain/limited/p95}, p99 {nethttp/plain/limited/p99} ms; {nethttp/plain/limited/ok} of 10,000 pass"},
		[3]string{"both HTTP, no limiter: the gap", "under 5 %", "its like by net/http: {flint/plain/open/rate:nethttp/plain/open/rate}"},
	)
	add(flintServer, "workers",
		[3]string{"naked goroutines", "2,985 req/s, p99 102 ms", "{naked/fast/rate} req/s, p99 {naked/fast/p99} ms"},
		[3]string{"worker pool, 100 workers, queue of 1,000", "1,975 req/s, p99 168 ms", "{pool/fast/rate} req/s, p99 {pool/fast/p99} ms"},
		[3]string{"500 clients, a handler of 50 ms, no pool", "500 goroutines, about 4 MB of stack", "{naked/slow/goroutines} goroutines, {naked/slow/stack} MB of stack"},
		[3]string{"500 clients, a handler of 50 ms, pool", "100 goroutines", "{pool/slow/goroutines} goroutines, {pool/slow/stack} MB of stack"},
	)
	without(flintServer, "its stated limits", "no chunked bodies, no HTTP/2, no Allow with 405, no request size limit, buckets never evicted",
		"A list of features, not a measurement; docs/differences.md and docs/limits.md say what chert does in each case.")
	without(flintServer, "what it wants at scale", "epoll, a parser without allocations, a radix tree, a limiter in Redis, HTTP/2",
		"Plans; consistent hashing at a balancer needs several machines. The parser and the router are in the experiment flint, epoll is in stages.")

	for i, row := range []string{"5,009 req/s, mean 9.87, p99 33 ms", "5,087 req/s, mean 19.68, p99 49 ms", "4,973 req/s, mean 40.40, p99 97 ms",
		"5,137 req/s, mean 77.40, p99 158 ms", "5,135 req/s, mean 154.08, p99 283 ms"} {
		add(cppServer, "stages", stageRow("stage 1, one thread, blocking", "stage1", 50<<i, row))
	}
	add(cppServer, "stages",
		stageRow("stage 2, thread pool, blocking", "stage2", 800, "21,489 req/s, mean 23.50, p99 48.85 ms"),
		stageRow("stage 3, epoll, one thread", "stage3", 800, "43,308 req/s, mean 18.40, p99 21.92 ms"),
		stageRow("stage 4, epoll and threads", "stage4", 1200, "57,650 req/s, mean 20.50, p99 30.39 ms"),
		stageRow("nginx", "nginx", 800, "60,438 req/s, mean 13.09, p99 32.54 ms"),
		[3]string{"stage 2, profile", "82 % in system calls, 39 % in write", "{stage2/syscalls} % in system calls, {stage2/write} % in write"},
		[3]string{"stage 3, profile", "57 % in system calls, 48 % in writev, 11.5 % in the router", "{stage3/syscalls} % in system calls, {stage3/write} % in write; these stages have no router"},
		[3]string{"stage 4, profile", "53 % in system calls, 39 % in writev", "{stage4/syscalls} % in system calls, {stage4/write} % in write"},
	)
	without(cppServer, "wanted next", "fully event-driven, better compliance, keep-alive tuning, caches, metrics", "Plans, not measurements.")

	idle := func(what, published, key string) [3]string {
		return [3]string{what, published, fmt.Sprintf("{%[1]s/goroutines} at {connections}; {%[1]s/bytes} resident bytes each", key)}
	}
	add(hopServer, "goroutines",
		idle("net/http, idle HTTP, 4,096 connections", "4,096 goroutines", "nethttp/idle"),
		idle("hop, idle HTTP", "0 goroutines", "polling/idle"),
		idle("net/http, gorilla's usual loop", "4,096 goroutines", "nethttp/gorilla"),
		idle("hop, gorilla's usual loop", "8,190 goroutines", "polling/gorilla"),
		idle("hop, gobwas low level, event-driven", "0 goroutines", "polling/gobwas-low"),
		idle("hop, gobwas wsutil, event-driven", "0 goroutines", "polling/gobwas-high"),
		[3]string{"hop, gorilla's API on event-driven reads", "0 goroutines", "its own adapter is not copied here; on chert, parked: {chert/gorilla-event/goroutines} at {connections}; {chert/gorilla-event/bytes} resident bytes each"},
		[3]string{"wrk -t6 -c300 -d30s, net/http", "112,945.52 req/s, 2.57 ms", "{nethttp/wrk/rate} req/s, {nethttp/wrk/mean} ms"},
		[3]string{"wrk -t6 -c300 -d30s, hop", "229,711.12 req/s, 1.23 ms (2.03x)", "net/http's handlers on netpoll: {polling/wrk/rate} req/s, {polling/wrk/mean} ms ({polling/wrk/rate:nethttp/wrk/rate}x); chert {chert/wrk/rate} req/s, {chert/wrk/mean} ms ({chert/wrk/rate:nethttp/wrk/rate}x)"},
		[3]string{"its parser beside net/http's", "a benchmark, no figure", "chert {parse-get/chert/ns} ns, net/http {parse-get/std/ns} ns"},
	)
	without(hopServer, "endpoints and frameworks it ships", "/ws-gobwas-low, /ws-gorilla-std, /sse, /file; chi, gin and echo", "A list; examples/ has them on chert, each with a test.")

	add(rawServer, "pools",
		[3]string{"before pools, ab -n 10000 -c 10 -k", "4,000.12 req/s, 0.250 ms a request", "{before/rate} req/s, {before/each} ms a request"},
		[3]string{"after three pools", "7,721.45 req/s, 0.130 ms a request", "{after/rate} req/s, {after/each} ms a request"},
		[3]string{"allocations", "about 95 % fewer", "{before/allocs} before, {after/allocs} after, for each request; {before/collections} and {after/collections} collections in 10,000 requests"},
		[3]string{"its way there: keep-alive", "1,389 req/s without, 1,710 with", "{after-closing/rate} req/s without, {after/rate} with"},
		[3]string{"its way there: concurrency", "1,710 req/s one at a time, 4,000 with goroutines", "{before-one/rate} req/s with one connection, {before/rate} with ten"},
	)
	without(rawServer, "its way there: 250 req/s and 1,389", "connections and requests handled wrongly, then mended", "Mistakes that its author found; a server with them fails the check that every server here must pass before it is measured.")
	without(rawServer, "wanted next", "HTTP/2, thousands of connections, zero copy", "Plans; thousands of connections are in goroutines and scaling, zero copy in static.")

	add(cServer, "static",
		[3]string{"a file of 100 KiB, wrk -t8 -c400 -d30s, its server", "248,280 req/s, mean 1.33 ms, 23.70 GB/s", "its like: {small/rate} req/s, mean {small/mean} ms, {small/gbytes} GB/s"},
		[3]string{"the same, nginx", "251,822 req/s, mean 4.01 ms, 24.07 GB/s", "{nginx/rate} req/s, mean {nginx/mean} ms, {nginx/gbytes} GB/s"},
		[3]string{"SO_REUSEPORT per worker instead of one acceptor with eventfd", "about 20 % of latency", "acceptor by SO_REUSEPORT, connections kept: {acceptor/mean:small/mean} of the latency; a connection per request: {acceptor-closing/cpu:small-closing/cpu} of the CPU"},
		[3]string{"no dup for each sendfile", "gained, no figure", "with dup by without: {dup/cpu:small/cpu} of the CPU, with 1 KiB {dup-1k/cpu:small-1k/cpu}"},
		[3]string{"TCP_CORK only above 16 KiB", "gained, no figure", "always by above 16 KiB, with a file of 1 KiB: {corked-1k/cpu:small-1k/cpu} of the CPU"},
		[3]string{"a parser that copies by known lengths", "gained, no figure", "the small server does not copy the request at all; user code is {small/usershare} % of its time"},
		[3]string{"its profile", "parsing 11 %, epoll_ctl 10 %, read and write 10 % each, sendfile 7 %", "user code {small/usershare} %, epoll_ctl {small/epoll_ctl} %, read {small/read} %, write {small/write} %, sendfile {small/sendfile} %"},
	)
	add(cServer, "keepalive",
		[3]string{"one thread, ab -n 10000 -c 100, without keep-alive", "51,105 req/s", "its like: {stage3/closed/rate} req/s; chert {chert/closed/rate}, nginx {nginx/closed/rate}"},
		[3]string{"one thread, ab -n 10000 -c 100, with keep-alive", "152,935 req/s", "its like: {stage3/kept/rate} req/s; chert {chert/kept/rate}, nginx {nginx/kept/rate}"},
	)
	add(cServer, "iouring",
		[3]string{"wanted next: io_uring", "about 35 % of cycles are those four calls", "ring by epoll, CPU: {ring-defer/64/cpu:epoll/64/cpu} with 64 connections, {ring-defer/close/cpu:epoll/close/cpu} with a connection per request"},
	)
	without(cServer, "wanted next", "precomputed heads, HTTPS", "Plans, not measurements.")
	without(cServer, "14 cores, 24 GB/s", "the absolute rates of its machine", "Absolute figures are of one machine; only ratios within one run are compared.")
	return all
}

func stageRow(what, key string, connections int, published string) [3]string {
	return [3]string{fmt.Sprintf("%s, %d connections", what, connections), published,
		fmt.Sprintf("{%[1]s/%[2]d/rate} req/s, mean {%[1]s/%[2]d/mean}, p99 {%[1]s/%[2]d/p99} ms", key, connections)}
}
