//go:build !unix

package top

import "os"

// fullScreen: a console may not understand the sequences that screen writes, so it gets
// blocks of text.
const fullScreen = false

func resizes() (<-chan os.Signal, func()) { return nil, func() {} }
