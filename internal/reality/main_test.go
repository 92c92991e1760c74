package reality

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirhq/weir/sim"
	"github.com/weirhq/weir/sim/scenario"
)

var (
	forReal = flag.Bool("real", false, "play the scenarios for real, too: it takes a quarter of a minute for each, and a machine with nothing else to do")
	record  = flag.String("record", "", "write what the real runs came to into this directory, for the tests that make none")
)

// driveWord makes this program the client's process.
const driveWord = "drive"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == driveWord {
		if err := drive(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// scenarios are the names of those that are played, in the order of the table.
var scenarios = []string{
	"constant", "lognormal", "far", "loss", "heavy-loss", "slow-oldest", "partition", "partition-answers", "restart",
}

func load(t testing.TB, name string) *sim.Scenario {
	t.Helper()
	s, err := scenario.Load(filepath.Join("testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
