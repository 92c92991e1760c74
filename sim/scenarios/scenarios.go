// Package scenarios embeds the library of scenarios that ships with Weir, and the files that
// they name. Package scenario reads it; each file says under purpose what it shows.
package scenarios

import "embed"

// Files are the library's files. A scenario's name is that of its file without ".yaml".
//
//go:embed *.yaml *.txt
var Files embed.FS
