// Package bad ranges over a map.
package bad

func first(m map[string]int) string {
	for k := range m {
		return k
	}
	return ""
}
