// Command packaging builds what a release of chert consists of, from the commit that is checked out:
//
//	go run -C packaging . build                    everything, in dist/ of the repository
//	go run -C packaging . build -version v0.1.0    with another version than that of the commit's tag
//	go run -C packaging . vulncheck                the known vulnerabilities that chert can reach
//	go run -C packaging . weigh                    what each module weighs in the binary
//	go run -C packaging . api                      what has changed for programs since the latest release
//	go run -C packaging . depend                   what chert adds to programs that import it
//	go run -C packaging . start                    how long a cold start takes
//
// That is: static binaries in archives for Linux, macOS and Windows, packages for Debian and Fedora and their
// relatives, the folder that the image is built from, a bill of materials of each binary (CycloneDX), and the checksums
// of all. The binaries are built twice, in different folders and with different caches, and must be the same; all else
// derives from them and from the commit, so whoever builds that commit gets the same files.
//
// It needs Go, git and the module proxy.
package main

// It is a module of its own, so that what makes packages is no dependency of chert. It builds clones of the repository
// and never changes the working tree.
