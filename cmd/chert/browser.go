package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// openBrowser opens the first listener that a browser can reach. Its failure is only noted: the server runs without
// it.
func openBrowser(ls []listener, note func(error)) {
	for _, l := range ls {
		if url := l.url(); strings.HasPrefix(url, "http") && !l.upgrade {
			if err := startBrowser(url, note); err != nil {
				note(err)
			}
			return
		}
	}
	note(errors.New("it cannot go to a unix socket"))
}

// startBrowser starts the first of browserCommands that can be started. later is called if that fails afterwards.
func startBrowser(url string, later func(error)) error {
	var all []error
	for _, args := range browserCommands(os.Getenv("BROWSER"), url) {
		cmd := exec.Command(args[0], args[1:]...)
		detach(cmd)
		if err := cmd.Start(); err != nil {
			all = append(all, err)
			continue
		}
		go func() {
			// Some run until the browser is closed.
			if err := cmd.Wait(); err != nil {
				later(fmt.Errorf("%s: %w", args[0], err))
			}
		}()
		return nil
	}
	if len(all) == 0 {
		return errors.New("$BROWSER names none")
	}
	return all[0]
}

// browserCommands returns the commands of $BROWSER, a list in which %s stands for the URL, which is otherwise
// appended; without it those of the system.
func browserCommands(env, url string) (all [][]string) {
	if env == "" {
		return [][]string{append(systemBrowser(), url)}
	}
	for _, command := range filepath.SplitList(env) {
		args := strings.Fields(command)
		if len(args) == 0 {
			continue
		}
		if !strings.Contains(command, "%s") {
			args = append(args, url)
		}
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "%s", url)
		}
		all = append(all, args)
	}
	return all
}
