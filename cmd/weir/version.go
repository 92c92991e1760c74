package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
)

type versionCmd struct{}

// Help is the command's long help.
func (*versionCmd) Help() string {
	return `Print the module's version, the commit it was built from when that is known, and the Go version.

    weir version`
}

// Run prints one line.
func (*versionCmd) Run(std *stdio) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return printVersion(std.out, info)
}

func printVersion(w io.Writer, info *debug.BuildInfo) error {
	settings := make(map[string]string, len(info.Settings))
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	version := info.Main.Version
	if version == "" || version == "(devel)" {
		version = "development"
	}
	parts := []string{"weir", version}
	if commit := settings["vcs.revision"]; commit != "" {
		if settings["vcs.modified"] == "true" {
			commit += "+changes"
		}
		parts = append(parts, "commit", commit, settings["vcs.time"])
	}
	parts = append(parts, runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH)
	_, err := fmt.Fprintln(w, strings.Join(parts, " "))
	return err
}
