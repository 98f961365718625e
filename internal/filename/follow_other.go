//go:build !unix

package filename

// canFollow: Options.Follow is supported. The links of Windows have drives, volumes and
// mount points, which no prefix describes.
const canFollow = false
