package media

import "mime"

// maxExt is the longest extension of the table, without its dot, in bytes.
// TestTable checks it.
const maxExt = 12

// Type returns the media type for the extension of name, with charset=utf-8 for
// text (except XML, which declares its charset itself, and JSON, which has
// none), and "" if the extension is unknown. name may be a path with slashes,
// in any case. Type is safe for concurrent use, and does not allocate for types
// of this package's table.
func Type(name string) string {
	ext := extension(name)
	if ext == "" {
		return ""
	}
	if len(ext)-1 <= maxExt {
		var lower [maxExt]byte
		for i := 1; i < len(ext); i++ {
			c := ext[i]
			if 'A' <= c && c <= 'Z' {
				c |= 0x20
			}
			lower[i-1] = c
		}
		// A map looked up by a converted slice does not allocate the string.
		if t, ok := types[string(lower[:len(ext)-1])]; ok {
			return t
		}
	}
	return mime.TypeByExtension(ext)
}

// extension returns the part from the last dot of the last segment of name, or
// "" if there is none or nothing after it.
func extension(name string) string {
	for i := len(name) - 1; i >= 0 && name[i] != '/'; i-- {
		if name[i] == '.' {
			if i == len(name)-1 {
				return ""
			}
			return name[i:]
		}
	}
	return ""
}
