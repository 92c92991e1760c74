// Package doccheck holds the Markdown files of this repository against the
// repository itself: a relative link leads to a file and a heading that exist,
// so does a comment in the code that names a document's section, Go code
// compiles, and a weir command names flags that the command has. It reaches
// nothing outside the repository.
//
// A Go block that is a whole file compiles as it is. A fragment is put into a
// function whose signature stands in a comment above the block:
//
//	<!-- go: (ctx context.Context, client *weir.Client) error -->
//
// so that a document can show three lines without the thirty around them.
// Imports of a fragment are added; in it an unused variable is no error.
//
// A block below a comment that names a file shows that file, whole:
//
//	<!-- file: examples/quickstart/main.go -->
package doccheck
