// Package bad takes the keys of a map as they come.
package bad

import (
	"maps"
	"slices"
)

func keys(m map[string]int) []string {
	return slices.Collect(maps.Keys(m))
}
