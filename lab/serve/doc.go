// Package serve is the command line that the servers under test have in common. Each is a program of its own, in cmd:
// what the others link would cost it memory and, by its layout, processor time.
//
// Some serve the files of a folder. All others serve the same:
//
//	GET /                         "Hello, World!"
//	GET /users/USER/posts/POST    tells the two
//	POST /form?id=ID              tells the id and two values of the body
//	GET /items                    ten items as JSON
//	GET /sleep                    "Hello, World!" after 20 ms
//	GET /compute                  the same, after 20 ms of computing
//	GET /turning                  the same, at once, until GET /turn?to=sleep or ?to=compute
//	POST /upload                  counts the body's bytes
//	POST /stream/take             counts them too, reading 32 KiB at a time
//	POST /stream/echo             sends the body back as it comes
//	GET /debug/give?bytes=N      so many bytes in writes of 32 KiB, with &length told before
//	GET /debug/reads              how often these two have read of bodies, and how much
//	GET /debug/stats              goroutines and memory, as JSON
//	GET /debug/gc                 collects garbage and gives free memory back to the system
package serve
