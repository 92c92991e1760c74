// Package bad excuses a range over a slice.
package bad

func sum(s []int) (n int) {
	//boundary:unordered only sums
	for _, v := range s {
		n += v
	}
	return n
}
