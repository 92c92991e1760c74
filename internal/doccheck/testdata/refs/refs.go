// Package refs refers to docs/a.md, "Its section", and over the line's end (docs/a.md,
// "Its section").
package refs

// No file: docs/b.md.
const a = 1

// No section: docs/a.md, "Its section" and "Its
// other section".
const b = 2
