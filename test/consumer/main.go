// Consumer is a program that imports the client and nothing else. It prints
// which third-party modules it was compiled with, and fails when that is more
// than a library may ask of those who import it.
package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"

	"github.com/weirhq/weir"
)

// allowed are the modules that the client is built on.
var allowed = []string{
	"github.com/miekg/dns",
	"golang.org/x/crypto",
	"golang.org/x/net",
	"golang.org/x/sys",
}

func main() {
	// The client is really linked in.
	if _, err := weir.New(weir.Config{}); err == nil {
		fmt.Fprintln(os.Stderr, "consumer: a client without a key was made")
		os.Exit(1)
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		fmt.Fprintln(os.Stderr, "consumer: the binary has no build information")
		os.Exit(1)
	}
	code, own := 0, false
	for _, m := range info.Deps {
		switch {
		case m.Path == "github.com/weirhq/weir":
			own = true
		case slices.Contains(allowed, m.Path):
			fmt.Println(m.Path, m.Version)
		default:
			fmt.Fprintf(os.Stderr, "consumer: %s %s is compiled into every program that imports the client\n", m.Path, m.Version)
			code = 1
		}
	}
	if !own {
		fmt.Fprintln(os.Stderr, "consumer: the client itself is not among the dependencies")
		code = 1
	}
	os.Exit(code)
}
