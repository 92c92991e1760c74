// Package bad exports a type without a comment.
package bad

type Exported int
