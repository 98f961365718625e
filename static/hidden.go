package static

import (
	"slices"
	"strings"

	"github.com/chert-http/chert/internal/rfc/coding"
)

// This file decides which names are not served.

// hidden reports whether name is not served: a dotfile, or a name in Options.Hidden. What is
// Guarded itself is not hidden, but other names of it are.
func (c *config) hidden(name string) bool {
	return c.dotfile(name) || c.hiding.Has(name) || c.Guarded != nil && c.guardedForm(name)
}

// guarded reports whether Options.Guarded has name.
func (c *config) guarded(name string) bool { return c.Guarded != nil && c.Guarded(name) }

// guardedEntry reports whether what an entry of a listing links to is guarded: a file, or the page of a folder.
func (c *config) guardedEntry(name string, folder bool) bool {
	if folder && c.Guarded != nil {
		name += "/"
	}
	return c.guarded(name)
}

// guardedForm reports whether name is a compressed form of a file that is guarded, or an
// index of a folder whose page is. There must be Options.Guarded.
func (c *config) guardedForm(name string) bool {
	for _, coded := range coding.OfFiles {
		if plain, ok := strings.CutSuffix(name, coded.Suffix()); ok && (c.Guarded(plain) || c.guardedForm(plain)) {
			return true
		}
	}
	end := strings.LastIndexByte(name, '/') + 1
	if !slices.Contains(c.Index, name[end:]) {
		return false
	}
	if end == 0 {
		return c.Guarded("/")
	}
	return c.Guarded(name[:end])
}

// hasSibling reports whether name may be sent in a coding from a file beside it.
func (c *config) hasSibling(name string, in coding.Coding) bool {
	coded := name + in.Suffix()
	return !c.hiding.Has(coded) && !c.guarded(coded)
}
