// Package bad exports a variable without a comment.
package bad

var Exported int
