package filename

import (
	"errors"
	"fmt"
	"mime"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chert-http/chert/direct/wire"
)

// CheckType returns an error if suffix is not the end of a name, from a dot on, or typ is no
// media type.
func CheckType(suffix, typ string) error {
	if len(suffix) < 2 || suffix[0] != '.' || strings.ContainsAny(suffix, "/\\\x00") {
		return fmt.Errorf("%q is not the end of a name such as \".foo\"", suffix)
	}
	media, _, err := mime.ParseMediaType(typ)
	if err != nil || !strings.Contains(media, "/") || wire.CheckField("Content-Type", typ) != nil {
		return fmt.Errorf("%q is no media type", typ)
	}
	return nil
}

// CheckFollow returns an error if links cannot lead into a folder with the path prefix,
// whether or not it exists.
func CheckFollow(prefix string) error {
	switch {
	case !canFollow:
		return errors.New("links out of the folder cannot be followed on this system")
	case !filepath.IsAbs(prefix) || strings.IndexByte(prefix, 0) >= 0:
		return fmt.Errorf("%q is not an absolute path", prefix)
	case slices.Contains(strings.Split(filepath.ToSlash(prefix), "/"), ".."):
		return fmt.Errorf("%q: \"..\" after a link would lead elsewhere; want the path without it", prefix)
	case filepath.Dir(filepath.Clean(prefix)) == filepath.Clean(prefix):
		return fmt.Errorf("%q is every file of the system; want the folders that links lead to", prefix)
	}
	return nil
}
