package listing

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"strings"
)

//go:embed palette.css
var paletteFile string

//go:embed style.css
var styleFile string

//go:embed error.css
var errorFile string

//go:embed script.js
var scriptFile string

//go:embed icons.svg
var iconsFile string

// A checkout may have changed the line endings, and a browser normalizes them
// before it checks the hash.
var (
	style      = strings.ReplaceAll(paletteFile+styleFile, "\r", "")
	errorStyle = strings.ReplaceAll(paletteFile+errorFile, "\r", "")
	script     = strings.ReplaceAll(scriptFile, "\r", "")
	icons      = strings.ReplaceAll(iconsFile, "\r", "")
)

// ContentSecurityPolicy is the value of the field that should go with a listing
// or an ErrorPage: no script runs but the listing's own, nothing is loaded, and
// no other origin may frame it. Markup injected by a name, should the escaping
// ever fail, has no effect. Immutable.
var ContentSecurityPolicy = "default-src 'none'; script-src " + hash(script) + "; style-src " + hash(style) + " " +
	hash(errorStyle) + "; " +
	"img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
