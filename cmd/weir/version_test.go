package main

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestPrintVersion(t *testing.T) {
	tail := " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
	for _, c := range []struct {
		info debug.BuildInfo
		want string
	}{
		{debug.BuildInfo{}, "weir development" + tail},
		{debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "weir development" + tail},
		{debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}}, "weir v0.1.0" + tail},
		{
			debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-08-01T12:00:00Z"}, {Key: "vcs.modified", Value: "true"}}},
			"weir development commit abc+changes 2026-08-01T12:00:00Z" + tail,
		},
	} {
		var out strings.Builder
		if err := printVersion(&out, &c.info); err != nil || out.String() != c.want {
			t.Errorf("version %q, %v; want %q", out.String(), err, c.want)
		}
	}
}
