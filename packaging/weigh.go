package main

import (
	"context"
	"io"
)

func weighMain(ctx context.Context, args []string, out io.Writer) error { return nil }
