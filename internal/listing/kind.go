package listing

import "strings"

// A kind is the id of an icon in icons.svg.
type kind string

const (
	folder  kind = "d"
	file    kind = "f"
	image   kind = "i"
	sound   kind = "m" // and moving pictures
	archive kind = "z"
	code    kind = "c"
	text    kind = "t"
	parent  kind = "u"
	link    kind = "l"
)

// kinds goes by extension, in lower case and without its dot.
var kinds = func() map[string]kind {
	m := map[string]kind{}
	for k, extensions := range map[kind]string{
		image: "apng avif bmp gif heic heif ico jpe jpeg jpg jxl png psd svg tif tiff webp",
		sound: "3gp aac aif aiff avi flac m4a m4v mid midi mkv mov mp3 mp4 mpeg mpg oga ogg ogv opus wav weba " +
			"webm wma wmv",
		archive: "7z apk br bz2 cab cpio deb dmg ear gz iso jar lz lz4 lzma rar rpm tar tbz tbz2 tgz txz war whl " +
			"xz zip zst zstd",
		code: "asm awk bash bat c cc clj cmd conf cpp cs css cxx d dart diff ex exs fish go graphql h hpp hrl " +
			"hs htm html ini ipynb java jl js json jsonc jsx kt kts less lua m map mjs ml mod nim nix patch " +
			"php pl pm proto ps1 py r rb rs sass scala scss sh sql sum svelte swift tex tf toml ts tsx v vue " +
			"wasm wat webmanifest xml xsl yaml yml zig zsh",
		text: "adoc asc bib cer cfg crt csv doc docx epub ics log markdown md me nfo odp ods odt org pdf pem " +
			"ppt pptx rst rtf sig srt tsv txt vcf vtt xls xlsx",
	} {
		for _, ext := range strings.Fields(extensions) {
			m[ext] = k
		}
	}
	return m
}()

// longest is more than the length of any extension in kinds.
const longest = 16

func kindOf(e *Entry) kind {
	if e.Dir {
		return folder
	}
	dot := strings.LastIndexByte(e.Name, '.')
	ext := e.Name[dot+1:]
	if dot < 0 || len(ext) >= longest {
		return file
	}
	var lower [longest]byte
	for i := range len(ext) {
		c := ext[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		lower[i] = c
	}
	if k, ok := kinds[string(lower[:len(ext)])]; ok {
		return k
	}
	return file
}
