package coding

import "strings"

// maxType is the longest media type considered, in bytes.
const maxType = 80

// Compressible reports whether content of a media type, with or without
// parameters and in any case, is worth compressing: text in the widest sense,
// and the few binary formats that are not already compressed. It does not
// allocate.
func Compressible(mediaType string) bool {
	if i := strings.IndexByte(mediaType, ';'); i >= 0 {
		mediaType = mediaType[:i]
	}
	mediaType = strings.Trim(mediaType, " \t")
	if len(mediaType) > maxType {
		return false
	}
	var buf [maxType]byte
	for i := range len(mediaType) {
		c := mediaType[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		buf[i] = c
	}
	lower := buf[:len(mediaType)]
	// Conversions for comparison and lookup do not allocate.
	if len(lower) > len("text/") && string(lower[:len("text/")]) == "text/" {
		return true
	}
	for i := len(lower) - 1; i >= 0; i-- {
		if lower[i] == '+' {
			switch string(lower[i+1:]) { // RFC 6839, RFC 9512
			case "json", "xml", "yaml", "json-seq":
				return true
			}
			break
		}
	}
	return compressible[string(lower)]
}

// compressible has the types that cannot be recognized by their names. Immutable.
var compressible = set(`
	application/json application/json5 application/jsonl application/x-ndjson application/json-seq application/ndjson
	application/javascript application/x-javascript application/ecmascript
	application/xml application/xml-dtd application/wasm
	application/yaml application/x-yaml application/toml application/sql application/graphql application/rtf
	application/x-sh application/x-httpd-php application/x-tex application/postscript
	application/n-triples application/n-quads application/x-subrip
	application/vnd.apple.mpegurl application/x-mpegurl audio/mpegurl audio/x-mpegurl audio/x-scpls
	application/x-tar application/mbox message/rfc822
	application/x-pem-file application/vnd.mapbox-vector-tile
	font/ttf font/otf font/sfnt font/collection
	application/vnd.ms-fontobject application/x-font-ttf application/x-font-otf application/x-font-opentype
	application/x-font-truetype application/font-sfnt
	image/bmp image/x-ms-bmp image/vnd.microsoft.icon image/x-icon
	image/x-portable-anymap image/x-portable-bitmap image/x-portable-graymap image/x-portable-pixmap
	model/stl model/obj model/mtl model/gltf-binary`)

func set(names string) map[string]bool {
	m := make(map[string]bool)
	for _, n := range strings.Fields(names) {
		m[n] = true
	}
	return m
}
