package sim

import (
	"flag"

	_ "github.com/cockroachdb/datadriven" // has -rewrite, as elsewhere
)

// rewriting tells whether golden files are to be written anew.
func rewriting() bool { return flag.Lookup("rewrite").Value.String() == "true" }
