// Package serve implements the command line that the servers under test have in common. Each server is a separate
// program, in cmd: linking the others would cost it memory and, through its layout, processor time.
//
// Some serve the files of a folder. All others serve the same:
//
//	GET /                         "Hello, World!"
//	GET /users/USER/posts/POST    returns both
//	POST /form?id=ID              returns the id and two values of the body
//	GET /items                    ten items as JSON
//	GET /sleep                    "Hello, World!" after 20 ms
//	GET /compute                  the same, after 20 ms of computing
//	GET /turning                  the same, at once, until GET /turn?to=sleep or ?to=compute
//	POST /upload                  counts the body's bytes
//	POST /stream/take             counts them too, reading 32 KiB at a time
//	POST /stream/echo             sends the body back as it arrives
//	GET /debug/give?bytes=N      N bytes in writes of 32 KiB; with &length preceded by Content-Length
//	GET /debug/reads              how often these two have read from bodies, and how much
//	GET /debug/stats              goroutines and memory, as JSON
//	GET /debug/tls                where the same is served with TLS, by some
//	GET /debug/gc                 collects garbage and returns free memory to the system
//	GET /debug/heap               a profile of the heap, for go tool pprof
//	GET /debug/cpu?seconds=N      one of the processor's time in the next N seconds
package serve
