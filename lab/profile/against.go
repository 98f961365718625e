package profile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/chert-http/chert/lab/rival"
)

// revisions finds what the flags --against and --against-tags name.
func (c *common) revisions(ctx context.Context, dir string) ([]*rival.Revision, error) {
	var all []*rival.Revision
	for _, name := range list(c.against) {
		r, err := rival.OpenRevision(ctx, dir, name)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(other *rival.Revision) bool { return other.Name == r.Name }) {
			return nil, fmt.Errorf("--against %s: there are two of the name %s", c.against, r.Name)
		}
		all = append(all, r)
	}
	if c.tags != "" {
		r, err := rival.OpenTags(ctx, c.tags)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// withRevisions inserts after each of chert's servers those of other revisions, so that their turns follow each
// other: other load on the machine is then similar for both. A server that a revision does not have is omitted.
func withRevisions(ctx context.Context, dir string, specs []rival.Spec, revisions []*rival.Revision, log io.Writer) ([]rival.Spec, error) {
	var all []rival.Spec
	for _, spec := range specs {
		all = append(all, spec)
		if !spec.Chert {
			continue
		}
		for _, r := range revisions {
			name := r.ServerName(spec)
			if !r.Has(spec) {
				fmt.Fprintf(log, "without %s: the revision has no such server\n", name)
				continue
			}
			fmt.Fprintf(log, "building %s\n", name)
			old, err := r.Build(ctx, dir, spec)
			if err != nil {
				return nil, err
			}
			all = append(all, old)
		}
	}
	if len(revisions) > 0 && len(all) == len(specs) {
		return nil, errors.New("--against: none of the servers to be measured is chert's and was there at that revision")
	}
	return all, nil
}

// families splits servers, in the order withRevisions puts them in: each with its other revisions.
func families(specs []rival.Spec) [][]rival.Spec {
	var all [][]rival.Spec
	for _, spec := range specs {
		if last := len(all) - 1; spec.Present != "" && last >= 0 {
			all[last] = append(all[last], spec)
		} else {
			all = append(all, []rival.Spec{spec})
		}
	}
	return all
}
