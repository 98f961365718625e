package adapt

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxIncluded bounds what includes may become, which can be nested and repeated: in bytes, of which a file has at least
// as many as a directive.
const maxIncluded = 4 << 20

// A File is one that a configuration includes.
type File struct {
	Name string // as notes have it
	Text string
}

// A Source returns the files that include of nginx names, which may be a pattern, in their order.
type Source func(name string) ([]File, error)

// includes puts what files have where they are included.
type includes struct {
	*output
	source Source
	left   int      // of maxIncluded
	within []string // the files that include the one at hand
	guards bool     // what is at hand may say who may have something: it is in http, beside servers or in one
}

// An origin is a file whose lines are numbered from base on, so that a line of a note tells the file too.
type origin struct {
	name string
	base int
}

// replaced returns directives with what they include. An error is that of a file which is no configuration.
func (n *includes) replaced(all []directive) (out []directive, err error) {
	for i := range all {
		d := all[i]
		if d.block != nil {
			outer := n.guards
			n.guards = outer || d.name() == "server" || d.name() == "http"
			d.block, err = n.replaced(d.block)
			if n.guards = outer; err != nil {
				return nil, err
			}
			if d.block == nil {
				d.block = []directive{}
			}
		}
		if d.name() != "include" || len(d.words) != 2 {
			out = append(out, d)
			continue
		}
		if strings.HasSuffix(d.arg(0), "mime.types") { // chert has them
			continue
		}
		files, err := n.source(d.arg(0))
		if err != nil {
			out = append(out, n.lost(d, err)...)
		}
		for _, f := range files {
			part, err := n.file(&d, f)
			if err != nil {
				return nil, err
			}
			out = append(out, part...)
		}
	}
	return out, nil
}

// lost leaves out a file. In http, a server or a location the include stays as a guard, so that all clients are denied:
// nginx does not start without the file, and the file may be what denies some of them.
func (n *includes) lost(d directive, err error) []directive {
	n.note(d.line, "include %s is left out: %v", d.arg(0), err)
	if d.lost = true; !n.guards {
		return nil
	}
	return []directive{d}
}

// harmless are files of nginx, of distributions and of Certbot that keep nothing from any client.
var harmless = strings.Fields(`mime.types fastcgi_params fastcgi.conf uwsgi_params scgi_params proxy_params
	options-ssl-nginx.conf`)

// file returns what d includes of one file.
func (n *includes) file(d *directive, f File) ([]directive, error) {
	switch n.left -= max(len(f.Text), directiveBytes); {
	case slices.Contains(n.within, f.Name):
		n.note(d.line, "include %s is left out: it is in itself", f.Name)
		return nil, nil
	case len(n.within) == maxDepth:
		d.words = []string{d.name(), f.Name}
		return n.lost(*d, fmt.Errorf("files are more than %d deep", maxDepth)), nil
	case n.left < 0:
		d.words = []string{d.name(), f.Name}
		return n.lost(*d, errors.New("the files are longer than 4 MiB")), nil
	}
	base := n.base(f)
	s := &scanner{text: f.Text, line: base + 1}
	all, err := s.parse(0)
	if err != nil {
		return nil, n.located(err)
	}
	n.within = append(n.within, f.Name)
	all, err = n.replaced(all)
	n.within = n.within[:len(n.within)-1]
	return all, err
}

// base returns what is added to the numbers of a file's lines.
func (o *output) base(f File) int {
	for _, other := range o.origins {
		if other.name == f.Name {
			return other.base
		}
	}
	base := o.lines
	o.origins = append(o.origins, origin{f.Name, base})
	o.lines += strings.Count(f.Text, "\n") + 1
	return base
}

// located returns a Note, which an error may be, with its file and the line there.
func (o *output) located(err error) error {
	if n, ok := err.(Note); ok {
		return o.place(n)
	}
	return err
}

func (o *output) place(n Note) Note {
	for _, from := range slices.Backward(o.origins) {
		if n.Line > from.base {
			n.File, n.Line = from.name, n.Line-from.base
			break
		}
	}
	return n
}
