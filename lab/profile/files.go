package profile

import (
	"math/rand/v2"

	"github.com/chert-http/chert/lab/exchange"
	"github.com/chert-http/chert/lab/files"
	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/rival"
)

// folder is what is served and requested when files are compared.
type folder struct {
	files []files.File
	count int // if there are no files yet: so many are generated, and requested like those of a site, some more often than others
	// byBytes: what an answer costs is judged by the bytes that came. At the end of a turn every connection is in the
	// midst of an answer, and of very large ones those are many against those that were read in full.
	byBytes bool
}

// fileServer is what profiles of files compare with its rivals by default.
const fileServer = "chertfiles"

const (
	treeSeed  = 5
	treeSkew  = 0.95 // the s of Zipf's law; of requests to web servers it is said to be between 0.6 and 1
	treeAsked = 200_000
	treeFiles = 10_000
)

func fileScenes() []scene {
	one := func(name, about, title, file string, size int64, byBytes bool) scene {
		return scene{name: name, about: about, title: title, connections: "64", rivals: everyone, needs: rival.Files,
			folder: &folder{files: []files.File{{Name: file, Size: size}}, byBytes: byBytes}}
	}
	return []scene{
		one("file1k", "a file of 1 KiB", "%d connections, a file of 1 KiB", "/file1k.css", 1<<10, false),
		one("file100k", "a file of 100 KiB", "%d connections, a file of 100 KiB", "/file100k.js", 100<<10, false),
		one("file10m", "a file of 10 MiB", "%d connections, a file of 10 MiB, requests by bytes", "/file10m.woff2", 10<<20, true),
		{name: "site1k", about: "a file of 1 KiB of chert serve: with access, limits, routes and header fields, and without",
			title: "%d connections, a file of 1 KiB of a site", connections: "64", server: "chertsite", rivals: everyone,
			needs: rival.Sites, folder: &folder{files: []files.File{{Name: "/file1k.css", Size: 1 << 10}}}},
		{name: "filetree", about: "10,000 files of mixed sizes, some more popular than others", title: "%d connections, a tree of files",
			connections: "64", rivals: everyone, needs: rival.Files, folder: &folder{count: treeFiles}},
	}
}

// open writes the folder, and the order of requests into tmp. The caller removes the folder if it has a name.
func (f *folder) open(c *Compare, tmp string) (err error) {
	all := f.files
	if f.count > 0 {
		all = files.Web(treeSeed, f.count)
	}
	if c.Folder, err = files.Write("", all); err != nil {
		return err
	}
	c.ByBytes = f.byBytes
	c.Checks = nil
	checked := []int{0}
	if f.count > 0 {
		paths := make([]string, len(all))
		for i, file := range all {
			paths[i] = file.Name
		}
		order := files.Zipf(treeSeed, len(all), treeSkew, treeAsked)
		if c.Order, err = load.WriteOrder(tmp, paths, order); err != nil {
			return err
		}
		checked = someOf(order)
	}
	for _, i := range checked {
		content, err := all[i].Content()
		if err != nil {
			return err
		}
		// No type: tables of types differ, and for text some servers add the charset.
		c.Checks = append(c.Checks, Check{exchange.Get(all[i].Name), exchange.OK("", content)})
	}
	return nil
}

// someOf picks some of the requested files: popular ones are likely to be among them, even more than once.
func someOf(order []int) []int {
	const enough = 40
	r := rand.New(rand.NewPCG(treeSeed, 3))
	some := make([]int, enough)
	for k := range some {
		some[k] = order[r.IntN(len(order))]
	}
	return some
}
