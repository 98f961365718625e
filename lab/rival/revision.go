package rival

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/chert-http/chert/lab/child"
)

// Revision is chert's source of another time or place than the present one, or built with other tags. Its servers are built from it as a whole,
// with the handlers it has, and can be measured beside the present ones.
type Revision struct {
	Name   string // follows the @ in the names of its servers: an abbreviated commit, or the name of a folder
	source string // folder of the source
	tags   string // of the build, separated by commas
}

// OpenRevision finds a revision. name is anything git knows as a commit, which is then written into dir; or, if it
// begins with a slash or a dot, as no name of a commit does, a folder with chert's source, which is taken as it is.
func OpenRevision(ctx context.Context, dir, name string) (*Revision, error) {
	if filepath.IsAbs(name) || strings.HasPrefix(name, ".") {
		return openSource(name)
	}
	lab, err := child.Lab(ctx)
	if err != nil {
		return nil, err
	}
	return checkout(ctx, filepath.Dir(lab), dir, name)
}

// openSource is the revision in a folder.
func openSource(folder string) (*Revision, error) {
	source, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(source, "lab", "go.mod")); err != nil {
		return nil, fmt.Errorf("%s is not a folder with chert's source: %w", folder, err)
	}
	return &Revision{Name: filepath.Base(source), source: source}, nil
}

// OpenTags is the present source built with tags, which are separated by commas.
func OpenTags(ctx context.Context, tags string) (*Revision, error) {
	lab, err := child.Lab(ctx)
	if err != nil {
		return nil, err
	}
	return &Revision{Name: tags, source: filepath.Dir(lab), tags: tags}, nil
}

// checkout writes a commit of the repository into a folder below dir. Nothing is written into the repository, not even
// a work tree entered, so that runs need not know of each other, nor be ended in order.
func checkout(ctx context.Context, repository, dir, name string) (*Revision, error) {
	git := func(args ...string) (string, error) {
		out, err := child.Run(ctx, child.Command{Args: append([]string{"git", "-C", repository}, args...)})
		return strings.TrimSpace(out.Stdout), err
	}
	commit, err := git("rev-parse", "--verify", "--short", "--end-of-options", name+"^{commit}")
	if err != nil {
		return nil, fmt.Errorf("there is no revision %q of chert: %w", name, err)
	}
	r := &Revision{Name: commit, source: filepath.Join(dir, "source@"+commit)}
	if err := os.MkdirAll(r.source, 0o700); err != nil {
		return nil, err
	}
	archive := r.source + ".tar"
	if _, err := git("archive", "--format=tar", "--output="+archive, commit); err != nil {
		return nil, fmt.Errorf("check out %s: %w", commit, err)
	}
	if _, err := child.Run(ctx, child.Command{Args: []string{"tar", "-x", "-f", archive, "-C", r.source}}); err != nil {
		return nil, fmt.Errorf("check out %s: %w", commit, err)
	}
	return r, os.Remove(archive)
}

// Has reports whether the revision has a server. Older ones may not have those that were added later.
func (r *Revision) Has(present Spec) bool {
	_, err := os.Stat(r.folder(present))
	return present.Chert && err == nil
}

// Build builds the revision's version of one of chert's servers in dir. It may run beside the present one.
func (r *Revision) Build(ctx context.Context, dir string, present Spec) (Spec, error) {
	spec := present
	spec.Name, spec.Present = r.ServerName(present), present.Name
	if !present.Chert {
		return Spec{}, fmt.Errorf("no %s: only servers built from chert have revisions", spec.Name)
	}
	spec.binary = filepath.Join(dir, spec.Name)
	var flags []string
	if r.tags != "" {
		flags = []string{"-tags", r.tags}
	}
	if err := child.BuildAt(ctx, spec.binary, r.folder(present), flags...); err != nil {
		return Spec{}, fmt.Errorf("%s does not build: %w", spec.Name, err)
	}
	return spec, nil
}

// ServerName is what the revision's version of a server is called.
func (r *Revision) ServerName(present Spec) string { return present.Name + "@" + r.Name }

// folder is where the package of a server is.
func (r *Revision) folder(present Spec) string {
	return filepath.Join(r.source, "lab", filepath.FromSlash(present.source))
}
