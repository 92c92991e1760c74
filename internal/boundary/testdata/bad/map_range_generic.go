// Package bad ranges over a map that a type parameter hides.
package bad

func first[K comparable, M ~map[K]int](m M) (k K) {
	for k = range m {
		return k
	}
	return k
}
