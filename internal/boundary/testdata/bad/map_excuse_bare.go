// Package bad excuses a range over a map without a reason.
package bad

func first(m map[string]int) string {
	//boundary:unordered
	for k := range m {
		return k
	}
	return ""
}
