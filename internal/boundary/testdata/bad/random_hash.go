// Package bad hashes with a seed of the process's.
package bad

import "hash/maphash"

var seed maphash.Seed
