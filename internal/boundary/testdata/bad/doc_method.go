// Package bad exports a method without a comment.
package bad

// T is exported.
type T[K any] struct{}

func (*T[K]) Exported() {}
