// Package bad exports a method of an interface without a comment.
package bad

// T is exported.
type T interface {
	// M has a comment.
	M()
	N()
}
