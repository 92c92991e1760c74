//go:build !unix

package filewatch

// openAtOnce is nothing where files in directories are no pipes.
const openAtOnce = 0
