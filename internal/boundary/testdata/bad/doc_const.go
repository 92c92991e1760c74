// Package bad exports a constant without a comment.
package bad

const (
	// One has a comment, which is not one over the group.
	One = 1

	Two = 2
)
