// Package boundary checks the shape of this repository: which package may
// import which, what the packages without I/O must not use, how long a file
// may be, and that what is exported is documented. docs/architecture.md
// describes the rules; [Rooms] is their table.
//
// It is run by its own test, over the whole module. Each rule also has a small
// package under testdata that breaks it once, so that every rule is seen to
// fail.
package boundary
