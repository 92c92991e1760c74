// Package bad exports a function without a comment.
package bad

func Exported() {}
